"""Belief with a thought for each sample compared with belief after one thought.

    python benchmarks/reader/thinking.py [--questions N]

The reader is the tests' model that was trained to think (tests/reasoner); the questions are two-hop
chains over five passages of worlds that it has never seen. For each question it prints the belief
of ten samples by both methods, and for comparison that of forty samples with a thought each.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.stats import t

from hopscope.lab.hopland.cases import Case, Check, cases, share
from hopscope.runtime.ports import Reader
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf
from hopscope.runtime.types import GenerationRequest, Measurement, Passage, Question
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters.seper import SePer

READER = Path(__file__).parents[2] / "tests" / "reasoner" / "model"
SAMPLES, MANY = 10, 40


def answers(reader: Reader, hops: int, n: int) -> Check:
    """The share of right greedy answers; prints their cost."""
    asked = cases(hops, n)
    requests = [
        GenerationRequest(
            prompt=prompts.short_answer(case.asked.text, case.full), max_tokens=32, stop=("\n",)
        )
        for case in asked
    ]
    replies = [samples[0] for samples in reader.generate(requests)]
    tokens = float(np.mean([reply.usage.output_tokens for reply in replies]))
    right = [r.text.strip() == c.asked.answer for r, c in zip(replies, asked, strict=True)]
    return share(f"{reader.name}, {hops} hops, {tokens:.1f} tokens", right)


def belief(
    reader: Reader,
    case: Case,
    evidence: tuple[Passage, ...],
    thinking: Literal["each", "once"],
    samples: int,
    seed: int,
) -> Measurement:
    """In the right answer."""
    meter = SePer(
        reader, lexical.build(), samples=samples, seed=seed, thinking=thinking, max_tokens=32
    )
    question = Question(text=case.asked.text, answers=(case.asked.answer,))
    [found] = meter.measure(question, [evidence])
    return found


def average(values: Sequence[float]) -> str:
    """The mean with Student's 95 % interval."""
    centre = float(np.mean(values))
    spread = float(np.std(values, ddof=1)) / len(values) ** 0.5
    half = float(t.ppf(0.975, len(values) - 1)) * spread
    return f"{centre:.3f} [{centre - half:.3f}, {centre + half:.3f}]"


def compare(reader: Reader, name: str, asked: Sequence[Case], shown: Any) -> None:
    """Print both beliefs, their difference, and each one's distance from that of many samples."""
    rows: list[list[float]] = []
    for seed, case in enumerate(asked):
        evidence: tuple[Passage, ...] = shown(case)
        found = (
            belief(reader, case, evidence, "each", SAMPLES, seed),
            belief(reader, case, evidence, "once", SAMPLES, seed),
            belief(reader, case, evidence, "each", MANY, 1000 + seed),
        )
        rows.append([f.value for f in found if f.value is not None])
    values = np.array(rows)
    each, once, many = values.T
    for label, column in (("each", each), ("once", once), ("once - each", once - each)):
        print(f"{name:20} {label:12} {average(column.tolist())}")
    for label, column in (("each", each), ("once", once)):
        off = float(np.sqrt(np.mean((column - many) ** 2)))
        print(f"{name:20} {label:12} {off:.3f} from that of {MANY} samples (root mean square)")


def main() -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(description="Compare two methods of belief under thinking.")
    parser.add_argument("--questions", type=int, default=40)
    count: int = parser.parse_args().questions
    thinks = hf.build(model=str(READER), device="cpu", thinking="on")
    for reader in (thinks, hf.build(model=str(READER), device="cpu", thinking="off")):
        for hops in (1, 2, 3):
            found = answers(reader, hops, count)
            of = found.measurement
            print(f"{found.name:64} {of.value:.3f} [{of.low:.3f}, {of.high:.3f}]")
    asked = cases(2, count)
    compare(thinks, "first hop missing", asked, lambda case: case.parts[0])
    compare(thinks, "all passages", asked, lambda case: case.full)


if __name__ == "__main__":
    main()
