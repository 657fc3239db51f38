"""Train the Hopland reader from scratch.

    python -m hopscope.lab.hopland.train --out DIR [--minutes N] [--seed N]

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
from collections import defaultdict
from collections.abc import Iterator
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hopscope.lab.hopland import blocks, tokenizer, world
from hopscope.lab.hopland.blocks import Batch, Packed
from hopscope.lab.hopland.contexts import Example, Mix, Sampler
from hopscope.lab.hopland.names import Forge

PEAK_RATE = 3e-3
FINAL_SHARE = 0.05
AVERAGING = 0.995
"""Decay of the running average of the weights: that average is what is measured and shipped."""
WARM_UP_STEPS = 100
BATCH_TOKENS = 6000
COPY_UNTIL = 0.6
REHEARSE_EVERY = 3
"""Every so many steps one of copying name pieces: else they are told apart only slowly."""
POOL = 320
"""Examples drawn before they are sorted by length and cut into batches."""

EASY = (("1", 8.0), ("fixed", 0.5))
MIDDLE = (("1", 4.0), ("2", 4.0), ("fixed", 0.7), ("comparison", 0.5), ("yesno", 0.5))
FULL = (
    ("1", 2.6),
    ("2", 4.0),
    ("3", 1.2),
    ("4", 0.5),
    ("comparison", 0.6),
    ("yesno", 0.7),
    ("fixed", 0.4),
)
STAGES: tuple[tuple[float, Mix, float], ...] = (
    # from this share of the time on: what to draw, and the loss weight of passage tokens
    (0.0, Mix((1, 1, 2), EASY, 0.3, 0.0, phrasing="plain"), 0.02),
    (0.08, Mix((1, 2, 2, 3), EASY, 0.4, 0.0), 0.02),
    (0.38, Mix((2, 3, 4, 5), EASY, 0.5, 0.0, alike=0.8), 0.02),
    (0.75, Mix((1, 2, 3, 4, 4, 5, 5, 6), FULL, 0.5, 0.1, alike=0.3), 0.0),
    (0.88, Mix((1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 8, 9, 10), FULL, 0.45, 0.22, alike=0.2), 0.0),
)
CLOSED = Mix((0,), (("fixed", 6.0), ("1", 2.0), ("2", 2.0), ("3", 0.5)), 0.3, 0.0, questions=10)
CLOSED_SHARE = 0.06
"""The share of examples without any passage."""


def stage(progress: float) -> tuple[Mix, float]:
    """The mix and the passage weight at this share of the training time."""
    _, mix, weight = [s for s in STAGES if s[0] <= progress][-1]
    return mix, weight


def examples(seed: int, progress: "Synchronized[float]") -> Iterator[tuple[Example, float]]:
    """Examples without end, eighteen from each world."""
    while True:
        rng = random.Random(f"train {seed}")
        phrasing = stage(progress.value)[0].phrasing
        made = world.make(seed, split="train", scale=rng.choice((2, 3, 4)), phrasing=phrasing)
        sampler = Sampler(made, rng, Forge(rng, "train", world.RESERVED))
        for _ in range(18):
            mix, weight = stage(progress.value)
            closed = weight == 0 and rng.random() < CLOSED_SHARE
            yield sampler.example(CLOSED if closed else mix), weight
        seed += 1


def feed(folder: Path, seed: int, progress: "Synchronized[float]", out: "Queue[Batch]") -> None:
    """Fill the queue with batches of like length; runs in its own process."""
    torch.set_num_threads(1)
    learned = tokenizer.load(folder)
    rng = random.Random(seed)
    source = examples(seed, progress)
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
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 32,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=learned.bos_token_id,
        eos_token_id=learned.eos_token_id,
        pad_token_id=learned.pad_token_id,
    )


def loss(model: LlamaForCausalLM, batch: Batch) -> torch.Tensor:
    """Weighted cross-entropy of the next token."""
    hidden = model.model(
        input_ids=batch.ids,
        attention_mask=blocks.mask(batch.segments),
        position_ids=batch.positions,
        use_cache=False,
    ).last_hidden_state
    weights = batch.weights[:, 1:]
    counted = weights > 0
    logits = model.lm_head(hidden[:, :-1][counted])
    losses = functional.cross_entropy(logits, batch.ids[:, 1:][counted], reduction="none")
    return (losses * weights[counted]).sum() / weights.sum()


def copying(alphabet: torch.Tensor, rng: torch.Generator) -> Batch:
    """Random tokens of an alphabet repeated with a random period; only the repeats count."""
    rows, length = 32, 64
    tokens = alphabet[torch.randint(len(alphabet), (rows, length), generator=rng)]
    periods = torch.randint(4, 32, (rows,), generator=rng)
    places = torch.arange(length).expand(rows, -1)
    ids = tokens.gather(1, places % periods[:, None])
    weights = (places >= periods[:, None]).float()
    return Batch(ids, torch.zeros_like(ids), places.contiguous(), weights)


class Trainer:
    """Model, optimiser and clock; everything a checkpoint holds."""

    def __init__(self, out: Path, minutes: float, seed: int, layers: int, width: int) -> None:
        torch.manual_seed(seed)
        self.out, self.minutes, self.seed = out, minutes, seed
        self.folder = out / "tokenizer"
        if not self.folder.exists():
            tokenizer.save(tokenizer.learn(seed), self.folder)
        self.learned = tokenizer.load(self.folder)
        self.model = LlamaForCausalLM(config(self.learned, layers=layers, width=width))
        with torch.no_grad():  # the last layer starts as nothing: fewer layers begin to copy sooner
            self.model.model.layers[-1].self_attn.o_proj.weight.zero_()
            self.model.model.layers[-1].mlp.down_proj.weight.zero_()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=0.0, betas=(0.9, 0.99), weight_decay=0.01
        )
        self.averaged = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(AVERAGING))
        self.step, self.tokens, self.seconds, self.copied = 0, 0, 0.0, False
        self.path = out / "checkpoint.pt"
        if self.path.exists():
            saved = torch.load(self.path, weights_only=True)
            self.model.load_state_dict(saved["model"])
            self.averaged.module.load_state_dict(saved["averaged"])
            self.averaged.n_averaged += 1
            self.optimizer.load_state_dict(saved["optimizer"])
            self.step, self.tokens = saved["step"], saved["tokens"]
            self.seconds, self.copied = saved["seconds"], saved["copied"]

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
            "copied": self.copied,
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

    def learn(self, batch: Batch) -> float:
        """One optimiser step; the clock counts it."""
        began = time.monotonic()
        share = (1 + math.cos(math.pi * self.progress)) / 2
        share = (FINAL_SHARE + (1 - FINAL_SHARE) * share) * min(
            1.0, (self.step + 1) / WARM_UP_STEPS
        )
        for group in self.optimizer.param_groups:
            group["lr"] = PEAK_RATE * share
        value = loss(self.model, batch)
        value.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.averaged.update_parameters(self.model)
        self.step += 1
        self.tokens += int((batch.segments >= 0).sum())
        self.seconds += time.monotonic() - began
        return float(value.detach())

    def copy(self) -> None:
        """Form the copying circuit first: without it reading is learned far more slowly.

        A small alphabet first: over all tokens at once the circuit may not form for minutes.
        """
        rng = torch.Generator().manual_seed(self.seed)
        every = torch.arange(len(tokenizer.SPECIAL), len(self.learned))
        for alphabet, until in ((every[:64], 1.2), (every, 0.6)):
            average = 10.0
            while average > until and self.step < 3000:
                average = 0.9 * average + 0.1 * self.learn(copying(alphabet, rng))
                if self.step % 50 == 0:
                    self.log(alphabet=len(alphabet), copy_loss=round(average, 3))
        self.copied = True
        self.save()

    def run(self) -> None:
        """Train until the minutes are spent."""
        if not self.copied:
            self.copy()
        held_out = validation(self.learned)
        spawn = multiprocessing.get_context("spawn")
        progress = spawn.Value("d", self.progress)
        queue: Queue[Batch] = spawn.Queue(maxsize=12)
        first_world = 10_000_000 * self.seed + 100 * self.step
        arguments = (self.folder, first_world, progress, queue)
        spawn.Process(target=feed, args=arguments, daemon=True).start()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        try:
            self.train(queue, progress, held_out)
        finally:  # also when interrupted
            self.save()
        self.log(tokens=self.tokens, held_out=measure(self.average, held_out))

    def train(
        self, queue: "Queue[Batch]", progress: "Synchronized[float]", held_out: "HeldOut"
    ) -> None:
        """Take steps until the minutes are spent; save and measure on the way."""
        saved, measured, waited = time.monotonic(), self.seconds, 0.0
        average: float | None = None
        copied = 10.0
        names = tokenizer.name_tokens(self.learned)
        rng = torch.Generator().manual_seed(self.step)
        while self.progress < 1:
            if self.step % REHEARSE_EVERY == 0:
                copied = 0.9 * copied + 0.1 * self.learn(copying(names, rng))
            began = time.monotonic()
            batch = queue.get()
            waited += time.monotonic() - began
            value = self.learn(batch)
            average = value if average is None else 0.98 * average + 0.02 * value
            progress.value = self.progress
            if self.step % 50 == 0:
                rate = round(self.tokens / self.seconds)
                self.log(
                    loss=round(average, 4),
                    copy_loss=round(copied, 3),
                    tokens=self.tokens,
                    rate=rate,
                    waited=round(waited),
                )
            if time.monotonic() - saved > 120:
                self.save()
                saved = time.monotonic()
            if self.seconds - measured > 240:
                measured = self.seconds
                self.log(tokens=self.tokens, held_out=measure(self.average, held_out))


HeldOut = list[tuple[Batch, list[list[str]]]]


def validation(learned: PreTrainedTokenizerFast, *, contexts: int = 120) -> HeldOut:
    """Batches from worlds of test names, with the cell of each question block."""
    rng = random.Random("validation")
    mix = Mix((5,), FULL, reasoning=0.5, missing=0.25)
    drawn = []
    for seed in range(contexts // 4):
        made = world.make(900_000 + seed, split="test", phrasing="mixed")
        sampler = Sampler(made, rng, Forge(rng, "test", world.RESERVED))
        drawn += [sampler.example(mix) for _ in range(4)]
    batches = []
    for i in range(0, len(drawn), 12):
        part = drawn[i : i + 12]
        batches.append(
            (
                blocks.collate(blocks.pack(learned, part, passage_weight=0.0)),
                [
                    [
                        cell(asked.kind, len(asked.steps), reasoned, absent)
                        for (asked, reasoned), absent in zip(e.asked, e.missing, strict=True)
                    ]
                    for e in part
                ],
            )
        )
    return batches


def cell(kind: str, hops: int, reasoned: bool, absent: bool) -> str:
    """The name under which a validation question is counted."""
    name = f"{hops} hops" if kind == "chain" else kind
    return f"{name}{' reasoned' if reasoned else ''}{' absent' if absent else ''}"


@torch.inference_mode()
def measure(model: LlamaForCausalLM, held_out: HeldOut) -> dict[str, list[float]]:
    """Per cell: share of targets that greedy decoding gives exactly, mean probability, n."""
    model.eval()
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for batch, cells in held_out:
        logits = model(
            input_ids=batch.ids,
            attention_mask=blocks.mask(batch.segments),
            position_ids=batch.positions,
            use_cache=False,
        ).logits[:, :-1]
        target = batch.ids[:, 1:]
        right = logits.argmax(-1) == target
        logprobs = logits.log_softmax(-1).gather(-1, target[..., None])[..., 0]
        for row, names in enumerate(cells):
            for number, name in enumerate(names, start=1):
                own = (batch.segments[row, 1:] == number) & (batch.weights[row, 1:] > 0)
                found[name].append(
                    (float(right[row, own].all()), math.exp(float(logprobs[row, own].sum())))
                )
    model.train()
    return {
        name: [
            round(sum(x for x, _ in rows) / len(rows), 3),
            round(sum(p for _, p in rows) / len(rows), 3),
            len(rows),
        ]
        for name, rows in sorted(found.items())
    }


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description="Train the Hopland reader from scratch.")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoint and curve")
    parser.add_argument("--minutes", type=float, default=85, help="training time in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    Trainer(given.out, given.minutes, given.seed, given.layers, given.width).run()


if __name__ == "__main__":
    main()
