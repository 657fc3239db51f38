"""The cost of per-step credit: against the authors' algorithm, a plain loop and its floor.

It uses IRCoT runs over Hopland with the embedded reader, N = 10 samples of each context, SePer-S
and SePer-H, and an entailment model of DeBERTa-base's size with random weights, since only cost
matters. Random weights judge every pair a contradiction, which would favour the product; so nine
tenths of each verdict are lexical.

    speed      ratios of time to the loop of benchmarks/credit_parts/straightforward.py with the
               same reader: for the samples, for the entailment of ten distinct answers, for both
               with the reader's own answers, and for Shapley credit of four steps; and whether
               samples and scores are equal
    authors    seconds of generation, of entailment and end to end by the algorithm that SePer's
               authors published, with its batches (benchmarks/credit_parts/authors.py), and by the
               product, run by run in turn; the pairs of both, the greatest difference of credit;
               the same for the product's approximations, without the halves
    modes      seconds, pairs and credit by these approximations against the exact mode, without the
               authors' side: less time for more runs
    floor      forwarded tokens over necessary ones, time over that of the same forward passes
               alone, with the reader's cache and with transformers', and their share of the
               machine's peak; each is the best of several times
    tracing    the cost of spans and of the database in a workflow without meters
    growth     time and memory by steps T, passages per step k, samples N, length of passages, and
               concurrent runs

The embedded reader is small; with `--feed-forward WIDTH` it gives the same replies at a larger
model's cost.

Ratios are of processor time, since others use the machine; `--clock wall` takes wall time.

    OMP_NUM_THREADS=1 python benchmarks/credit.py [--limit 20] [--part NAME]... [--json]
"""

import argparse
import gc
import json
import sys
import tempfile
from pathlib import Path

from credit_parts import authors, floor, growth, modes, padded_reader, random_nli, speed, tracing
from credit_parts.bench import Benchmark, Row

from hopscope.api import parts
from hopscope.runtime.readers import tiny

PARTS = {
    "speed": speed.measure,
    "authors": authors.measure,
    "modes": modes.measure,
    "floor": floor.measure,
    "tracing": tracing.measure,
    "growth": growth.measure,
}


def main() -> None:
    gc.set_threshold(200_000)  # as the command line does
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=20, help="runs")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="default: all")
    parser.add_argument("--reader", default=parts.TINY)
    parser.add_argument(
        "--feed-forward",
        type=int,
        help="pad the embedded reader's feed-forward to this width, by zeros",
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--clock", choices=("processor", "wall"), default="processor")
    parser.add_argument("--layers", type=int, default=random_nli.LAYERS, help="of the NLI model")
    parser.add_argument("--width", type=int, default=random_nli.WIDTH, help="likewise, 64 or more")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.limit < 1:
        parser.error("--limit of 1 or more is needed")
    if given.feed_forward is not None and given.reader != parts.TINY:
        parser.error("--feed-forward pads the embedded reader: leave --reader out")
    with tempfile.TemporaryDirectory() as folder:
        if given.feed_forward is not None:
            padded = padded_reader.save(Path(folder) / "reader", feed_forward=given.feed_forward)
            given.reader = f"hf:{padded}"
        elif given.reader == parts.TINY:  # read by transformers, whose passes can be watched
            given.reader = f"hf:{tiny.FOLDER}"
        bench = Benchmark(
            spec=given.reader,
            device=given.device,
            wall=given.clock == "wall",
            limit=given.limit,
            nli=random_nli.save(Path(folder) / "nli", layers=given.layers, width=given.width),
            folder=Path(folder),
        )
        found = {name: PARTS[name](bench) for name in given.part or PARTS}
    if given.json:
        json.dump(found, sys.stdout, indent=2)
        return
    show(found)


def show(found: Row, *, depth: int = 0) -> None:
    for name, value in found.items():
        indent = "  " * depth
        if (
            isinstance(value, dict)
            and not any(isinstance(v, dict) for v in value.values())
            and depth
        ):
            cells = ", ".join(f"{key} {_cell(each)}" for key, each in value.items())
            print(f"{indent}{name}: {cells}")
        elif isinstance(value, dict):
            print(f"\n{indent}{name}")
            show(value, depth=depth + 1)
        else:
            print(f"{indent}{name:44}{_cell(value):>14}")


def _cell(value: object) -> str:
    return (
        f"{value:.4g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


if __name__ == "__main__":
    main()
