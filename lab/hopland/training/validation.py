"""Accuracy of a reader in training on worlds of test names, cell by cell."""

import math
import random
from collections import defaultdict

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from hopscope.lab.hopland import world
from hopscope.lab.hopland.contexts import Mix, Sampler
from hopscope.lab.hopland.names import Forge
from hopscope.lab.hopland.questions import GeneratedQuestion
from hopscope.lab.hopland.training import blocks, guidance
from hopscope.lab.hopland.training.blocks import Batch
from hopscope.lab.hopland.training.curriculum import FULL
from hopscope.lab.hopland.turns import Turn

HeldOut = list[tuple[Batch, list[list[str]]]]


def validation(learned: PreTrainedTokenizerFast, *, contexts: int = 120) -> HeldOut:
    """Batches from worlds of test names, with the cell of each question block."""
    rng = random.Random("validation")
    mix = Mix((5,), FULL, reasoning=0.3, missing=0.25, broken=0.25, others=0.5)
    drawn = []
    for seed in range(contexts // 4):
        made = world.make(900_000 + seed, split="test", phrasing="mixed")
        sampler = Sampler(made, rng, Forge(rng, "test", world.RESERVED))
        drawn += [sampler.example(mix) for _ in range(4)]
        drawn += [sampler.dialogue(mix), sampler.aside(mix)]
    batches = []
    for i in range(0, len(drawn), 12):
        part = drawn[i : i + 12]
        batches.append(
            (
                blocks.collate(blocks.pack(learned, part, passage_weight=0.0)),
                [
                    [cell(asked, turn) for asked, turn in zip(e.asked, e.turns, strict=True)]
                    for e in part
                ],
            )
        )
    return batches


def cell(asked: GeneratedQuestion, turn: Turn) -> str:
    """The name under which a validation question is counted."""
    name = f"{len(asked.steps)} hops" if asked.kind == "chain" else asked.kind
    if turn.kind not in ("answer", "reasoned"):
        name = ""
    kind = "" if turn.kind == "answer" else turn.kind
    return " ".join(filter(None, (name, kind, "absent" if turn.absent else "")))


@torch.inference_mode()
def measure(model: LlamaForCausalLM, held_out: HeldOut) -> dict[str, list[float]]:
    """Per cell: share of targets that greedy decoding gives exactly, mean probability, n."""
    model.eval()
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for batch, cells in held_out:
        _, hidden = guidance.states(model, batch)
        logits = model.lm_head(hidden[:, :-1])
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
