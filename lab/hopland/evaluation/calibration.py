"""Calibration of a reader's sampled answers, and the temperature that gives the best.

    python -m hopscope.lab.hopland.evaluation.calibration [--model FOLDER] [--n N]

prints the calibration error by temperature on worlds of training names, for
`export --temperature`; `evaluate` measures it on worlds of test names.
"""

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hopscope.lab.hopland.cases import Check, batches, cases, mean, resampled, share
from hopscope.lab.hopland.names import Split
from hopscope.lab.hopland.questions import GeneratedQuestion
from hopscope.runtime.ports import Reader
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf
from hopscope.runtime.types import GenerationRequest, Passage

SAMPLES = (10, 50)
BINS = 10
TEMPERATURES = (1.0, 0.9, 0.8, 0.7, 0.6)


def calibration(
    reader: Reader, n: int, *, temperature: float = 1.0, split: Split = "test"
) -> list[Check]:
    """Expected calibration error of the most frequent sampled answer: its frequency against its
    accuracy, in ten bins. Chains have one to three hops; half of the questions have all their
    passages, half lack one. Even ten different samples give an unknown answer a frequency of .1,
    so there is also a figure of more samples."""
    over: list[tuple[GeneratedQuestion, Sequence[Passage]]] = []
    rng = random.Random("calibration")
    for hops in (1, 2, 3):
        for place, case in enumerate(cases(hops, n // 3 + 1, split=split)):
            over.append((case.asked, case.full if place % 2 else rng.choice(case.parts)))
    over = over[:n]
    requests = [
        GenerationRequest(
            prompt=prompts.short_answer(a.text, e),
            n=max(SAMPLES),
            temperature=temperature,
            max_tokens=24,
            stop=("\n",),
        )
        for a, e in over
    ]
    drawn = [
        [sample.text.strip() for sample in samples]
        for part in batches(requests)
        for samples in reader.generate(part)
    ]
    return [
        figure
        for samples in SAMPLES
        for figure in _calibrated(samples, [d[:samples] for d in drawn], [a for a, _ in over])
    ]


def _calibrated(
    samples: int, drawn: Sequence[Sequence[str]], over: Sequence[GeneratedQuestion]
) -> list[Check]:
    top = [Counter(texts).most_common(1)[0] for texts in drawn]
    sure = np.array([count / samples for _, count in top])
    right = np.array([text == asked.answer for (text, _), asked in zip(top, over, strict=True)])

    def error(rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> float:
        bins = np.minimum((sure[rows] * BINS).astype(int), BINS - 1)
        gaps = [abs(float((sure[rows] - right[rows])[bins == b].sum())) for b in range(BINS)]
        return sum(gaps) / len(rows)

    every = np.arange(len(over))
    generator = np.random.default_rng(0)
    errors = [error(generator.choice(every, len(every))) for _ in range(1000)]
    name = f"calibration error, {samples} samples"
    return [
        resampled(name, error(every), errors, len(over), "<= .08"),
        share(f"most frequent of {samples} right", right.tolist()),
        mean(f"its frequency among {samples}", sure.tolist()),
    ]


def main() -> None:
    """Parse the command line and print the error by temperature."""
    parser = argparse.ArgumentParser(description="Find a Hopland reader's temperature.")
    default = Path(hf.__file__).parent / "hopland"
    parser.add_argument("--model", type=Path, default=default, help="folder of the reader")
    parser.add_argument("--n", type=int, default=600, help="questions")
    given = parser.parse_args()
    if given.n < 3:
        parser.error("--n of 3 or more is needed")
    reader = hf.build(model=str(given.model), dtype="float32")
    for temperature in TEMPERATURES:
        found = calibration(reader, given.n, temperature=temperature, split="train")
        told = ", ".join(f"{f.name} {f.measurement.value:.3f}" for f in found)
        print(f"{temperature}: {told}", flush=True)


if __name__ == "__main__":
    main()
