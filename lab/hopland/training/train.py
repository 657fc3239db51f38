"""Train the Hopland reader, from scratch or from an existing one.

    python -m hopscope.lab.hopland.training.train --out DIR [--minutes N] [--start FOLDER] ...

The command trains the tokenizer, then the model; started again, it resumes from its last
checkpoint. The schedule follows the minutes of training, so it fits the machine.
`DIR/curve.jsonl` gets one line per measurement. The recipe is explained in docs/reader.md.
"""

import argparse
import json
import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from queue import Empty
from typing import Any

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hopscope.lab.hopland.training import growth, guidance, tokenizer
from hopscope.lab.hopland.training.blocks import Batch
from hopscope.lab.hopland.training.curriculum import STAGES, TRAINED
from hopscope.lab.hopland.training.feeding import feed
from hopscope.lab.hopland.training.losses import Average, Losses, copying, losses
from hopscope.lab.hopland.training.validation import HeldOut, measure, validation

PEAK_RATE = 3e-3
FINAL_SHARE = 0.05
AVERAGING = 0.995
"""Decay of the running average of the weights, which is measured and shipped."""
WARM_UP_STEPS = 100
HEAD = 64
"""Width of an attention head: one head has to carry the identity of some 180 name pieces."""
GUIDANCE, GUIDED_UNTIL, LAST_GUIDANCE = 0.5, 0.6, 0.2
"""Weight of the guidance at the start; the share of the time at which it would reach 0 without its
minimum."""
COPY_UNTIL = 0.3
COPY_STEPS = 100
PATIENCE = 5.0
"""Seconds between checks of the process that makes the batches."""
REHEARSE_EVERY = 4
"""One step in this many copies name pieces, which are otherwise slow to distinguish."""


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


def fed(queue: "Queue[Batch]", feeder: BaseProcess) -> Iterator[Batch]:
    """Batches as they come; an error when the process that makes them has ended."""
    while True:
        try:
            yield queue.get(timeout=PATIENCE)
        except Empty:
            if not feeder.is_alive():
                raise SystemExit(
                    f"the process that makes batches ended, exit code {feeder.exitcode}; "
                    "start the command again to go on"
                ) from None


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
        stage: int = TRAINED,
    ) -> None:
        torch.manual_seed(seed)
        self.rate = rate
        self.out, self.minutes, self.seed = out, minutes, seed
        self.folder = out / "tokenizer"
        if self.folder.exists():
            self.learned = tokenizer.load(self.folder)
        else:
            self.learned = tokenizer.learn(seed) if start is None else tokenizer.longer(start)
        self.model = LlamaForCausalLM(config(self.learned, layers=layers, width=width))
        if start is not None:
            growth.grow(self.model, self.learned, start)
        tokenizer.save(self.learned, self.folder)  # only now, as another shape is refused
        self.layers = layers
        self.through: Callable[..., torch.Tensor] = guidance.through
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=0.0, betas=(0.9, 0.99), weight_decay=0.01, fused=True
        )
        self.averaged = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(AVERAGING))
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.place = -1 if start is None else stage
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
        found = losses(self.model, batch, self.through)
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
        """Form the copying circuit first: without it the model learns to read far more slowly."""
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
        """Train until the minutes are spent, with layers compiled."""
        self.through = torch.compile(guidance.through, dynamic=True)
        if self.place < 0:
            self.copy()
        held_out = validation(self.learned)
        spawn = multiprocessing.get_context("spawn")
        place = spawn.Value("i", self.place)
        queue: Queue[Batch] = spawn.Queue(maxsize=8)
        first_world = 10_000_000 * self.seed + 100 * self.step
        feeder = spawn.Process(
            target=feed, args=(self.folder, first_world, place, queue), daemon=True
        )
        feeder.start()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        try:
            self.train(fed(queue, feeder), place, held_out)
        finally:  # also when interrupted
            self.save()
        self.log(tokens=self.tokens, held_out=measure(self.average, held_out))

    def train(
        self, batches: Iterator[Batch], place: "Synchronized[int]", held_out: HeldOut
    ) -> None:
        """Take steps until the minutes are spent; save and measure on the way."""
        saved, measured, waited = time.monotonic(), self.seconds, 0.0
        average, copied = Average(0.98), Average(0.9)
        names = tokenizer.name_tokens(self.learned)
        rng = torch.Generator().manual_seed(self.step)
        while self.progress < 1:
            if self.step % REHEARSE_EVERY == 0:
                copied.add(self.learn(copying(names, self.layers, rng)))
            began = time.monotonic()
            batch = next(batches)
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
    parser.add_argument(
        "--stage",
        type=int,
        choices=range(1, len(STAGES) + 1),
        help=f"with --start, in a new folder: the stage to begin at, by default {TRAINED + 1}",
    )
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    if given.minutes <= 0 or given.threads < 1:
        parser.error("--minutes and --threads of more than 0 are needed")
    if given.layers < 2 or given.width < 2 * HEAD or given.width % HEAD:
        parser.error(f"2 --layers are needed at least and a --width of {HEAD} times 2 or more")
    if given.stage is not None and given.start is None:
        parser.error("--stage needs --start: from nothing, training begins with copying")
    if given.start is not None and not (given.start / "model.safetensors").is_file():
        parser.error(f"--start: {given.start} holds no model.safetensors")
    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    try:
        trainer = Trainer(
            given.out,
            minutes=given.minutes,
            seed=given.seed,
            layers=given.layers,
            width=given.width,
            rate=given.rate,
            start=given.start,
            stage=TRAINED if given.stage is None else given.stage - 1,
        )
    except ValueError as error:
        parser.error(str(error))
    trainer.run()


if __name__ == "__main__":
    main()
