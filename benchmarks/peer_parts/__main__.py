"""Hopscope beside the libraries that do the same: both sides in one process, in turn.

    seper      SePer's credit by the algorithm that its authors published
    entropy    semantic entropy by lm-polygraph
    naive      answering by FlashRAG's sequential pipeline
    ircot      answering by FlashRAG's IRCoT
    bm25       batches of queries by bm25s with numba
    batching   the reader's scheduler, prefix tree and cache beside transformers' own

`make bench-peers` installs them in an environment of their own. A peer that cannot be imported is
told, and the others are measured. Times are processor time; a figure is the median over rounds with
the least and the greatest, and a ratio is taken round by round: above 1 the peer takes longer.

    OMP_NUM_THREADS=1 PYTHONPATH=benchmarks python -m peer_parts [--only PART ...] [--rounds N]
"""

import argparse
import gc
import os
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before the peers import the hub's client

from credit_parts import random_nli
from credit_parts.bench import Benchmark

from hopscope.runtime.readers import tiny
from peer_parts import (
    answering,
    belief,
    bm25_batches,
    continuous_batching,
    entropy,
    random_reader,
)
from peer_parts.rounds import PeerMissingError, Table

PEERS = ("flashrag-dev", "lm-polygraph", "bm25s", "numba", "transformers", "torch")
PARTS = ("seper", "entropy", "naive", "ircot", "bm25", "batching")
ROUNDS = 3


def main() -> None:
    gc.set_threshold(200_000)  # as the command line does
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--rounds", type=int, help="by default 3, of batching 2")
    parser.add_argument("--runs", type=int, default=2, help="IRCoT runs of seper and entropy")
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--layers", type=int, default=random_nli.LAYERS, help="of the NLI model")
    parser.add_argument("--width", type=int, default=random_nli.WIDTH, help="likewise, 64 or more")
    parser.add_argument("--prompts", type=int, default=6, help="answered by batching")
    parser.add_argument("--measured", type=int, default=1, help="IRCoT runs of batching")
    parser.add_argument("--reader-layers", type=int, default=random_reader.LAYERS)
    parser.add_argument("--reader-width", type=int, default=random_reader.WIDTH)
    given = parser.parse_args()
    rounds = ROUNDS if given.rounds is None else given.rounds
    numbers = (given.runs, given.questions, given.passages, given.queries, given.prompts)
    if min(rounds, given.measured, *numbers) < 1:
        parser.error("all numbers must be 1 or more")
    print(", ".join(f"{name} {_version(name)}" for name in PEERS), flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def bench() -> Benchmark:
            return Benchmark(
                spec=f"hf:{tiny.FOLDER}",
                device="cpu",
                wall=False,
                limit=given.runs,
                nli=random_nli.save(folder / "nli", layers=given.layers, width=given.width),
                folder=folder,
            )

        def answered(workflow: str) -> list[Table]:
            return answering.measure(questions=given.questions, rounds=rounds, workflows=[workflow])

        parts: dict[str, Callable[[], list[Table]]] = {
            "seper": lambda: belief.measure(bench()),
            "entropy": lambda: entropy.measure(bench(), rounds),
            "naive": lambda: answered("naive"),
            "ircot": lambda: answered("ircot"),
            "bm25": lambda: bm25_batches.measure(
                passages=given.passages, queries=given.queries, rounds=rounds
            ),
            "batching": lambda: continuous_batching.measure(
                Benchmark(
                    spec="",
                    device="cpu",
                    wall=False,
                    limit=given.measured,
                    nli=folder,
                    folder=folder,
                ),
                prompts=given.prompts,
                rounds=given.rounds or continuous_batching.ROUNDS,
                layers=given.reader_layers,
                width=given.reader_width,
            ),
        }
        for part in given.only:
            try:
                for table in parts[part]():
                    print(table, flush=True)
            except PeerMissingError as missing:
                print(f"\n{part}: not measured. {missing}", flush=True)
    sys.stdout.flush()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "is not installed"


if __name__ == "__main__":
    main()
