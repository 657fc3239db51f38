"""Train the Hopland reader, from scratch or on from one that exists.

    python -m hopscope.lab.hopland.train --out DIR [--minutes N] [--seed N] [--start FOLDER]

The command trains the tokenizer, then the model, and goes on from its last checkpoint when
it is started again. The schedule follows the minutes spent training, so it fits the machine.
`DIR/curve.jsonl` gets one line per measurement. The recipe is explained in docs/reader.md.
"""

import argparse
import json
import math
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hopscope.lab.hopland import blocks, growth, guidance, tokenizer, world
from hopscope.lab.hopland.blocks import Batch, Packed
from hopscope.lab.hopland.contexts import Example, Sampler
from hopscope.lab.hopland.curriculum import CLOSED, STAGES, TRAINED
from hopscope.lab.hopland.names import Forge
from hopscope.lab.hopland.searched import Searched
from hopscope.lab.hopland.validation import HeldOut, measure, validation
from hopscope.lab.hopland.world import Density

PEAK_RATE = 3e-3
FINAL_SHARE = 0.05
AVERAGING = 0.995
"""Decay of the running average of the weights: that average is what is measured and shipped."""
WARM_UP_STEPS = 100
BATCH_TOKENS = 6000
HEAD = 64
"""Width of an attention head: one head has to carry the identity of some 180 name pieces."""
GUIDANCE, GUIDED_UNTIL, LAST_GUIDANCE = 0.5, 0.6, 0.2
"""Weight of the guidance at the start, the share of the time at which it is at its least."""
COPY_UNTIL = 0.3
COPY_STEPS = 100
REHEARSE_EVERY = 4
"""Every so many steps one of copying name pieces: else they are told apart only slowly."""
LARGE = 200
"""Scale of the worlds that are searched: about as many passages as the shipped corpus."""
SPARSE = 0.6
"""The share of the searched worlds that are told as sparsely as the shipped corpus."""
POOL = 320
"""Examples drawn before they are sorted by length and cut into batches."""


def examples(seed: int, place: "Synchronized[int]") -> Iterator[tuple[Example, float]]:
    """Examples without end, those of small worlds and those searched for in large ones."""
    rng = random.Random(f"train {seed}")
    small, large = worlds(seed, place, Sampler), worlds(seed, place, Searched)
    while True:
        stage = STAGES[place.value]
        sampler = next(large if rng.random() < stage.searched else small)
        draw = rng.random()
        if (draw := draw - stage.closed) < 0:
            example = Sampler.example(sampler, CLOSED)
        elif (draw := draw - stage.asides) < 0:
            example = sampler.aside(stage.mix)
        elif draw < stage.dialogues:
            example = sampler.dialogue(stage.mix)
        else:
            example = sampler.example(stage.mix)
        yield example, stage.passage_weight


def worlds(seed: int, place: "Synchronized[int]", kind: type[Sampler]) -> Iterator[Sampler]:
    """The sampler of one world after another, each for some examples."""
    large = kind is Searched
    while True:
        rng = random.Random(f"train {seed} {large}")
        phrasing = STAGES[place.value].mix.phrasing
        scale = LARGE if large else rng.choice((2, 3, 4))
        density: Density = "sparse" if large and rng.random() < SPARSE else "dense"
        made = world.make(seed, split="train", scale=scale, phrasing=phrasing, density=density)
        sampler = kind(made, rng, Forge(rng, "train", world.RESERVED))
        for _ in range(400 if large else 18):
            yield sampler
        seed += 1


def feed(folder: Path, seed: int, place: "Synchronized[int]", out: "Queue[Batch]") -> None:
    """Fill the queue with batches of like length; runs in its own process."""
    torch.set_num_threads(1)
    learned = tokenizer.load(folder)
    rng = random.Random(seed)
    source = examples(seed, place)
    while True:
        pool: list[Packed] = []
        for example, weight in (next(source) for _ in range(POOL)):
            pool += blocks.pack(learned, [example], passage_weight=weight)
        pool.sort(key=lambda p: len(p.ids))
        batches: list[list[Packed]] = [[]]
        for packed in pool:
            if len(packed.ids) * (len(batches[-1]) + 1) > BATCH_TOKENS:
                batches.append([])
            batches[-1].append(packed)
        rng.shuffle(batches)
        for batch in batches:
            out.put(blocks.collate(batch))


def config(learned: PreTrainedTokenizerFast, *, layers: int, width: int) -> LlamaConfig:
    """The reader's shape."""
    return LlamaConfig(
        vocab_size=len(learned),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // HEAD,
        num_key_value_heads=width // HEAD,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=learned.bos_token_id,
        eos_token_id=learned.eos_token_id,
        pad_token_id=learned.pad_token_id,
    )


@dataclass(frozen=True)
class Losses:
    """What one batch teaches, and how well it was known."""

    answers: torch.Tensor
    """Weighted cross-entropy of the next token."""
    pointing: torch.Tensor
    right: float
    """The share of the tokens that count in full which were the likeliest."""


def losses(model: LlamaForCausalLM, forward: Any, batch: Batch) -> Losses:
    """Run a batch forward, in bfloat16 where that is safe."""
    with torch.autocast("cpu", torch.bfloat16):
        inputs, hidden, seen = forward(model, batch.ids, batch.segments, batch.positions)
        weights = batch.weights[:, 1:]
        counted = weights > 0
        logits = model.lm_head(hidden[:, :-1][counted]).float()
        pointed = guidance.pointing(model, inputs, seen, batch)
    target, weight = batch.ids[:, 1:][counted], weights[counted]
    each = functional.cross_entropy(logits, target, reduction="none")
    full = weight >= 1
    right = (logits.detach().argmax(-1) == target)[full].float().mean()
    return Losses((each * weight).sum() / weights.sum(), pointed, float(right))


def copying(alphabet: torch.Tensor, layers: int, rng: torch.Generator) -> Batch:
    """Random tokens of an alphabet repeated with a random period; only the repeats count.

    Guided: the first layer to the token before, the second to the token that comes next.
    """
    rows, length = 32, 64
    tokens = alphabet[torch.randint(len(alphabet), (rows, length), generator=rng)]
    periods = torch.randint(4, 32, (rows,), generator=rng)
    places = torch.arange(length).expand(rows, -1)
    ids = tokens.gather(1, places % periods[:, None])
    weights = (places >= periods[:, None]).float()
    row, place = weights.nonzero().T
    previous = torch.stack([row, place - 1, place - 2, torch.full_like(row, layers - 1)], 1)
    source = torch.stack(
        [row, place - 1, place - periods[row], torch.full_like(row, layers - 2)], 1
    )
    sources = torch.cat([previous, source])
    return Batch(ids, torch.zeros_like(ids), places.contiguous(), weights, sources)


class Average:
    """Running averages of losses, corrected for the short past at the start."""

    def __init__(self, decay: float) -> None:
        self.decay, self.weight = decay, 0.0
        self.sums = {"answers": 0.0, "pointing": 0.0, "right": 0.0}

    def add(self, found: Losses) -> None:
        """Take one step's losses in."""
        self.weight = self.decay * self.weight + 1 - self.decay
        new = (float(found.answers.detach()), float(found.pointing.detach()), found.right)
        for (name, old), value in zip(self.sums.items(), new, strict=True):
            self.sums[name] = self.decay * old + (1 - self.decay) * value

    @property
    def values(self) -> dict[str, float]:
        """The averages by name."""
        return {name: value / max(self.weight, 1e-9) for name, value in self.sums.items()}

    @property
    def settled(self) -> bool:
        """Whether the averages stand on enough steps to judge by."""
        return self.weight > 0.8

    def rounded(self) -> dict[str, float]:
        """The averages for the log."""
        return {name: round(value, 4) for name, value in self.values.items()}


class Trainer:
    """Model, optimiser and clock; everything a checkpoint holds."""

    def __init__(
        self,
        out: Path,
        *,
        minutes: float,
        seed: int,
        layers: int,
        width: int,
        rate: float,
        start: Path | None,
    ) -> None:
        torch.manual_seed(seed)
        self.rate = rate
        self.out, self.minutes, self.seed = out, minutes, seed
        self.folder = out / "tokenizer"
        if not self.folder.exists():
            learned = tokenizer.learn(seed) if start is None else tokenizer.longer(start)
            tokenizer.save(learned, self.folder)
        self.learned = tokenizer.load(self.folder)
        self.model = LlamaForCausalLM(config(self.learned, layers=layers, width=width))
        if start is not None:
            growth.grow(self.model, self.learned, start)
        self.layers = layers
        self.forward = torch.compile(guidance.states, dynamic=True)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=0.0, betas=(0.9, 0.99), weight_decay=0.01, fused=True
        )
        self.averaged = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(AVERAGING))
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.place = -1 if start is None else TRAINED
        self.path = out / "checkpoint.pt"
        if self.path.exists():
            saved = torch.load(self.path, weights_only=True)
            self.model.load_state_dict(saved["model"])
            self.averaged.module.load_state_dict(saved["averaged"])
            self.averaged.n_averaged += 1
            self.optimizer.load_state_dict(saved["optimizer"])
            self.step, self.tokens = saved["step"], saved["tokens"]
            self.seconds, self.place = saved["seconds"], saved["place"]

    @property
    def average(self) -> LlamaForCausalLM:
        """The running average of the weights: what is measured and shipped."""
        module = self.averaged.module
        assert isinstance(module, LlamaForCausalLM)
        return module

    @property
    def progress(self) -> float:
        """The share of the training time that is spent."""
        return min(1.0, self.seconds / (60 * self.minutes))

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        state = {
            "model": self.model.state_dict(),
            "averaged": self.averaged.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "place": self.place,
        }
        part = self.path.with_suffix(".part")
        torch.save(state, part)
        os.replace(part, self.path)

    def log(self, **values: Any) -> None:
        """Add one line to the curve."""
        line = {"step": self.step, "minutes": round(self.seconds / 60, 2), **values}
        with (self.out / "curve.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)

    def learn(self, batch: Batch) -> Losses:
        """One optimiser step; the clock counts it."""
        began = time.monotonic()
        share = (1 + math.cos(math.pi * self.progress)) / 2
        share = (FINAL_SHARE + (1 - FINAL_SHARE) * share) * min(
            1.0, (self.step + 1) / WARM_UP_STEPS
        )
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * share
        found = losses(self.model, self.forward, batch)
        guided = max(LAST_GUIDANCE, GUIDANCE * (1 - self.progress / GUIDED_UNTIL))
        (found.answers + guided * found.pointing).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.averaged.update_parameters(self.model)
        self.step += 1
        self.tokens += int((batch.segments >= 0).sum())
        self.seconds += time.monotonic() - began
        return found

    def copy(self) -> None:
        """Form the copying circuit first: without it reading is learned far more slowly."""
        rng = torch.Generator().manual_seed(self.seed)
        every = torch.arange(len(tokenizer.SPECIAL), len(self.learned))
        average = Average(0.9)
        while self.step < COPY_STEPS or average.values["answers"] > COPY_UNTIL:
            if self.progress == 1:
                raise SystemExit("copying did not form in the time given; try another --seed")
            average.add(self.learn(copying(every, self.layers, rng)))
            if self.step % 50 == 0:
                self.log(copying=average.rounded())
        self.place = 0
        self.save()

    def run(self) -> None:
        """Train until the minutes are spent."""
        if self.place < 0:
            self.copy()
        held_out = validation(self.learned)
        spawn = multiprocessing.get_context("spawn")
        place = spawn.Value("i", self.place)
        queue: Queue[Batch] = spawn.Queue(maxsize=8)
        first_world = 10_000_000 * self.seed + 100 * self.step
        arguments = (self.folder, first_world, place, queue)
        spawn.Process(target=feed, args=arguments, daemon=True).start()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        try:
            self.train(queue, place, held_out)
        finally:  # also when interrupted
            self.save()
        self.log(tokens=self.tokens, held_out=measure(self.average, held_out))

    def train(self, queue: "Queue[Batch]", place: "Synchronized[int]", held_out: HeldOut) -> None:
        """Take steps until the minutes are spent; save and measure on the way."""
        saved, measured, waited = time.monotonic(), self.seconds, 0.0
        average, copied = Average(0.98), Average(0.9)
        names = tokenizer.name_tokens(self.learned)
        rng = torch.Generator().manual_seed(self.step)
        while self.progress < 1:
            if self.step % REHEARSE_EVERY == 0:
                copied.add(self.learn(copying(names, self.layers, rng)))
            began = time.monotonic()
            batch = queue.get()
            waited += time.monotonic() - began
            average.add(self.learn(batch))
            stage = STAGES[self.place]
            right = average.values["right"] if average.settled else 0.0
            mastered = stage.mastered is not None and right >= stage.mastered
            if mastered or self.progress >= stage.latest:
                self.place = place.value = min(self.place + 1, len(STAGES) - 1)
                average = Average(0.98)
            if self.step % 50 == 0:
                self.log(
                    stage=self.place,
                    **average.rounded(),
                    copying=copied.rounded(),
                    tokens=self.tokens,
                    rate=round(self.tokens / self.seconds),
                    waited=round(waited),
                )
            if time.monotonic() - saved > 120:
                self.save()
                saved = time.monotonic()
            if self.seconds - measured > 240:
                measured = self.seconds
                self.log(tokens=self.tokens, held_out=measure(self.average, held_out))


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description="Train the Hopland reader.")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoint and curve")
    parser.add_argument("--minutes", type=float, default=85, help="training time in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--rate", type=float, default=PEAK_RATE, help="highest learning rate")
    parser.add_argument("--start", type=Path, help="folder of a trained reader to go on from")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(
        given.out,
        minutes=given.minutes,
        seed=given.seed,
        layers=given.layers,
        width=given.width,
        rate=given.rate,
        start=given.start,
    )
    trainer.run()


if __name__ == "__main__":
    main()
