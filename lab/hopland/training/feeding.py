"""Endless batches for training, made in a process of their own."""

import random
from collections.abc import Iterator
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import torch

from hopscope.lab.hopland import world
from hopscope.lab.hopland.contexts import Example, Sampler
from hopscope.lab.hopland.names import Forge
from hopscope.lab.hopland.training import blocks, tokenizer
from hopscope.lab.hopland.training.blocks import Batch, Packed
from hopscope.lab.hopland.training.curriculum import CLOSED, STAGES
from hopscope.lab.hopland.training.searched import Searched
from hopscope.lab.hopland.world import Density

BATCH_TOKENS = 6000
LARGE = 200
"""Scale of the searched worlds: about as many passages as the shipped corpus."""
SPARSE = 0.6
"""The share of the searched worlds with a sparse style, as the shipped corpus has."""
POOL = 320
"""Examples drawn before they are sorted by length and cut into batches."""


def examples(seed: int, place: "Synchronized[int]") -> Iterator[tuple[Example, float]]:
    """Endless examples, from small worlds and from searches in large ones."""
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
    """Fill the queue with batches of similar length; runs in its own process."""
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
