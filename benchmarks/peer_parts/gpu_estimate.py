"""An estimate of a large job on a GPU, from passes and tokens counted on the embedded reader.

The job: 500 questions by IRCoT, N = 10 samples, credit of every step by SePer-S, a reader of 7e9
weights in bfloat16 and an entailment model of DeBERTa-large's size (3.0e8 weights beside its
embeddings) in half precision. Nothing here was run on a GPU. Counted on the processor, for the
first questions of Hopland's test set, are the reader's passes and tokens and the compared pairs:

    ours      answering as `hopscope eval` does at its defaults, then measuring, a run at a time
    official  answering one question at a time; for each context N samples in a batch, the prompt
              read anew; all pairs of SePer-S, 8 at a time (credit_parts/authors.py)
    floor     each token of the common beginnings once, all questions in lockstep: as many passes as
              the longest run writes tokens

A pass takes as long as reading the weights once from memory, or as its arithmetic, whichever is
longer: 2 operations for each weight and token, at the published bandwidth and half of the published
dense peak in bfloat16. Attention, sampling, Python and the retriever are left out, so real times
are longer, for all three sides.

    OMP_NUM_THREADS=1 PYTHONPATH=benchmarks python -m peer_parts.gpu_estimate [--questions 20]
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from credit_parts import random_nli
from credit_parts.authors import CHUNK
from credit_parts.bench import Benchmark, N
from credit_parts.contexts import contexts
from credit_parts.floor import tokens_needed
from credit_parts.product import Product
from credit_parts.runs import trajectories
from experiments.answering import Way, answered

from hopscope.api import parts
from hopscope.lab.experiments.concurrency import MOST
from hopscope.runtime.readers import tiny
from hopscope.runtime.texts import answers
from hopscope.runtime.types import ForwardCounts, Run

JOB = 500
"""Questions of the job."""
READER, ENTAILMENT = 7e9, 3.0e8
"""Weights."""
BYTES = 2
"""Of a weight."""
SHARE = 0.5
"""Of the published peak that products of matrices reach."""
PAIR_TOKENS = 40
"""Of a pair of short replies with the question before each."""


class Gpu(NamedTuple):
    """Published figures."""

    name: str
    bytes_per_second: float
    operations_per_second: float
    """Dense, bfloat16."""


GPUS = (Gpu("H100 SXM", 3.35e12, 989e12), Gpu("A100 80 GB SXM", 2.04e12, 312e12))


class Work(NamedTuple):
    """Of one question."""

    passes: float
    """Of the reader."""
    tokens: float
    """Through the reader."""
    pairs: float
    pair_batches: float

    def seconds(self, gpu: Gpu) -> float:
        return _seconds(gpu, READER, self.passes, self.tokens) + _seconds(
            gpu, ENTAILMENT, self.pair_batches, self.pairs * PAIR_TOKENS
        )


def _seconds(gpu: Gpu, weights: float, passes: float, tokens: float) -> float:
    """The longer of moving the weights and computing, for passes of even size."""
    moving = passes * weights * BYTES / gpu.bytes_per_second
    computing = tokens * 2 * weights / (SHARE * gpu.operations_per_second)
    return max(moving, computing)


def counted(questions: int, folder: Path) -> dict[str, Work]:
    """The work of a question on each side."""
    bench = Benchmark(
        spec=f"hf:{tiny.FOLDER}",
        device="cpu",
        wall=False,
        limit=questions,
        nli=random_nli.save(folder / "nli", layers=1, width=64),
        folder=folder,
    )
    asked = bench.questions()
    together: Any = parts.reader(bench.spec)  # whose passes are those of any transformers model
    way = Way(min(MOST, questions), True)
    answered("ircot", way, together, parts.corpus(parts.HOPLAND), asked)
    own: ForwardCounts = together.forwarded
    runs = trajectories(bench)
    product = Product(bench, "trajectory", ("seper",))
    for found in runs:
        product.credits(found)
    measuring: ForwardCounts = product.reader.reader.forwarded
    official = _official(runs, product)
    written = [_written(found) for found in runs]
    needed = tokens_needed(product.reader.reader, product.reader.samples)
    answering = sum(sum(each) for each in written)
    longest = max(sum(each) for each in written) + max(
        len(one.token_ids) for drawn in product.reader.samples.values() for one in drawn
    )
    n = len(runs)
    return {
        "official": official,
        "ours": Work(
            (own.passes + measuring.passes) / n,
            (own.tokens + measuring.tokens) / n,
            product.pairs / n,
            2.0,
        ),
        "floor": Work(
            longest / JOB,
            (needed + answering + _prompts(runs)) / n,
            product.pairs / n,
            product.pairs / n / 256,
        ),
    }


def _written(found: Run) -> list[int]:
    """Tokens of each reply of a run."""
    return [step.usage.output_tokens for step in found.steps if step.kind == "generate"]


def _prompts(runs: Sequence[Run]) -> int:
    """Tokens of the longest prompt of each run, which holds the passages of all its others."""
    return sum(
        max(step.usage.input_tokens for step in found.steps if step.kind == "generate")
        for found in runs
    )


def _official(runs: Sequence[Run], product: Product) -> Work:
    passes = tokens = pairs = 0
    for found in runs:
        for step in found.steps:
            if step.kind == "generate":
                passes += step.usage.output_tokens
                tokens += step.usage.input_tokens + step.usage.output_tokens
        golds = len(answers.distinct(found.question.answers))
        for request in contexts(found, every=False).values():
            drawn = product.reader.samples[request]
            longest = max(len(each.token_ids) for each in drawn)
            passes += longest
            prompt = len(product.reader.reader._renderer.prompt_ids(request.prompt))
            tokens += N * (prompt + longest)
            pairs += 2 * N * golds
    n = len(runs)
    return Work(passes / n, tokens / n, pairs / n, pairs / n / CHUNK)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=20, help="questions that are counted")
    given = parser.parse_args()
    if given.questions < 1:
        parser.error("--questions of 1 or more are needed")
    with tempfile.TemporaryDirectory() as folder:
        work = counted(given.questions, Path(folder))
    print(f"Estimate, not measured: {JOB} questions, IRCoT, N = {N}, SePer-S of all steps\n")
    names = " | ".join(f"minutes on one {gpu.name}" for gpu in GPUS)
    print(f"| | passes a question | tokens a question | pairs a question | {names} |")
    print(f"|---|--:|--:|--:|{'--:|' * len(GPUS)}")
    for side, each in work.items():
        minutes = " | ".join(f"{JOB * each.seconds(gpu) / 60:.1f}" for gpu in GPUS)
        cells = f"{each.passes:.1f} | {each.tokens:,.0f} | {each.pairs:.1f}"
        print(f"| {side} | {cells} | {minutes} |")


if __name__ == "__main__":
    main()
