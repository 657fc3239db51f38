"""Make the reader of the tests that thinks before it answers.

    python tests/reasoner/make.py [--out FOLDER] [--minutes N] [--seed N]

It starts from the smaller Hopland reader (lab/hopland/small) and learns to write `<think>`, the
facts of the chain one sentence each, `</think>` and then the answer. With `enable_thinking=False`
its template writes an empty thought, after which it answers at once. Examples are drawn from
worlds of training names, as the embedded reader's recipe does (docs/reader.md); several questions
share a context. Where the passages lack a link, that link is a name drawn at random, in the
thought as in the answer: so the reader's thoughts vary where it does not know.
"""

import argparse
import math
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from tokenizers import AddedToken
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from hopscope.lab.hopland.contexts import Example, Mix, Sampler
from hopscope.lab.hopland.questions import GeneratedQuestion
from hopscope.lab.hopland.training import blocks, feeding, guidance, tokenizer
from hopscope.lab.hopland.training.blocks import Packed
from hopscope.lab.hopland.training.curriculum import FULL, STAGES
from hopscope.lab.hopland.training.losses import Average, losses
from hopscope.lab.hopland.training.searched import Searched
from hopscope.lab.hopland.turns import Turn
from hopscope.runtime.prompting import prompts

HERE = Path(__file__).parent
START = HERE.parents[1] / "lab" / "hopland" / "small"
OPEN, CLOSE = "<think>", "</think>"
TEMPLATE = tokenizer.CHAT_TEMPLATE.replace(
    "<|assistant|>{% endif %}",
    "<|assistant|>{% if enable_thinking is defined and not enable_thinking %}"
    f"{OPEN}{CLOSE}{{% endif %}}{{% endif %}}",
)
MIX = Mix(
    (1, 2, 3, 4, 4, 5, 6, 8), FULL, 0.0, 0.2, 0.3,
    phrasing=STAGES[-1].mix.phrasing, alike=0.3, coalitions=0.3,
)  # fmt: skip
SEARCHED = 0.6
"""The share of contexts that a search found in a world as large as the shipped corpus."""
THINKING, REASONED = 0.65, 0.3
"""The share of questions that it thinks about, and of those that ask for a chain of thought."""
RATE, FINAL_SHARE, WARM_UP_STEPS = 8e-4, 0.05, 30
POOL, BATCH_TOKENS = 80, 2200
"""Contexts drawn before they are sorted by length and cut into batches, and tokens of a batch."""


def learned() -> PreTrainedTokenizerFast:
    """The smaller reader's tokenizer with the two marks, which are ordinary tokens as in Qwen3."""
    known = tokenizer.load(START)
    known.add_tokens([AddedToken(mark, normalized=False) for mark in (OPEN, CLOSE)])
    known.chat_template = TEMPLATE
    return known


def turn(rng: random.Random, asked: GeneratedQuestion) -> Turn:
    """A question in one of the two prompts, with or without a thought."""
    reasoned = rng.random() < REASONED
    prompt = (prompts.chain_of_thought if reasoned else prompts.short_answer)(asked.text)
    user, sentences = prompt.messages[-1].content, asked.sentences
    said = asked.reasoning if reasoned else asked.answer
    if rng.random() < THINKING:
        return Turn("thinking", user, f"{OPEN}{' '.join(sentences)}{CLOSE}{said}")
    begun = OPEN + CLOSE
    if reasoned and rng.random() < 0.6:  # it goes on with what it has begun
        kept = " ".join(sentences[: rng.randint(1, len(sentences))])
        begun, said = begun + kept, said[len(kept) :]
    return Turn("at once", user, said, begun=begun)


def examples(seed: int) -> Iterator[Example]:
    """Contexts with questions, without end."""
    rng = random.Random(f"reasoner {seed}")
    place: Any = SimpleNamespace(value=len(STAGES) - 1)
    small = feeding.worlds(seed, place, Sampler)
    large = feeding.worlds(seed, place, Searched)
    while True:
        drawn = next(large if rng.random() < SEARCHED else small).example(MIX)
        yield replace(drawn, turns=tuple(turn(rng, asked) for asked in drawn.asked))


def batches(known: PreTrainedTokenizerFast, seed: int) -> Iterator[blocks.Batch]:
    """Batches of like length, without end."""
    rng, source = random.Random(seed), examples(seed)
    while True:
        pool: list[Packed] = []
        for _ in range(POOL):
            pool += blocks.pack(known, [next(source)], passage_weight=0.0)
        pool.sort(key=lambda packed: len(packed.ids))
        made: list[list[Packed]] = [[]]
        for packed in pool:
            if len(packed.ids) * (len(made[-1]) + 1) > BATCH_TOKENS:
                made.append([])
            made[-1].append(packed)
        rng.shuffle(made)
        yield from map(blocks.collate, made)


def train(out: Path, minutes: float, seed: int) -> None:
    """Fine-tune until the minutes are spent, and save in half precision."""
    torch.manual_seed(seed)
    known = learned()
    model: Any = LlamaForCausalLM.from_pretrained(str(START), dtype=torch.float32)
    model.resize_token_embeddings(len(known))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.99), weight_decay=0.01)
    average, begun, tokens = Average(0.98), time.monotonic(), 0
    for step, batch in enumerate(batches(known, seed), start=1):
        progress = (time.monotonic() - begun) / (60 * minutes)
        if progress >= 1:
            break
        share = FINAL_SHARE + (1 - FINAL_SHARE) * (1 + math.cos(math.pi * progress)) / 2
        for group in optimizer.param_groups:
            group["lr"] = RATE * share * min(1.0, step / WARM_UP_STEPS)
        found = losses(model, batch, guidance.through)
        found.answers.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        average.add(found)
        tokens += int((batch.segments >= 0).sum())
        if step % 50 == 0:
            print(step, f"{progress:.0%}", average.rounded(), tokens, flush=True)
    out.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(str(out))
    tokenizer.save(known, out)
    (out / "model.safetensors").chmod(0o644)


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description="Make the reader of the tests that thinks.")
    parser.add_argument("--out", type=Path, default=HERE / "model")
    parser.add_argument("--minutes", type=float, default=42)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(1)
    train(given.out, given.minutes, given.seed)


if __name__ == "__main__":
    main()
