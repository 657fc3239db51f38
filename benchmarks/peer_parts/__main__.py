"""Hopscope beside the libraries that do the same: both sides in one process, in turn.

    seper      SePer's credit by the algorithm that its authors published
    entropy    semantic entropy by lm-polygraph
    naive      answering by FlashRAG's sequential pipeline
    ircot      answering by FlashRAG's IRCoT
    bm25       batches of queries by bm25s with numba

`make bench-peers` installs them in an environment of their own. A peer that cannot be imported is
told, and the others are measured. Times are processor time; a figure is the median over rounds with
the least and the greatest, and a ratio is taken round by round: above 1 the peer takes longer.

    OMP_NUM_THREADS=1 PYTHONPATH=benchmarks python -m peer_parts [--only PART ...] [--rounds 3]
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
from peer_parts import answering, belief, bm25_batches, entropy
from peer_parts.rounds import PeerMissingError, Table

PEERS = ("flashrag-dev", "lm-polygraph", "bm25s", "numba", "transformers", "torch")
PARTS = ("seper", "entropy", "naive", "ircot", "bm25")


def main() -> None:
    gc.set_threshold(200_000)  # as the command line does
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=2, help="IRCoT runs of seper and entropy")
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--layers", type=int, default=random_nli.LAYERS, help="of the NLI model")
    parser.add_argument("--width", type=int, default=random_nli.WIDTH, help="likewise, 64 or more")
    given = parser.parse_args()
    if min(given.rounds, given.runs, given.questions, given.passages, given.queries) < 1:
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
            return answering.measure(
                questions=given.questions, rounds=given.rounds, workflows=[workflow]
            )

        parts: dict[str, Callable[[], list[Table]]] = {
            "seper": lambda: belief.measure(bench()),
            "entropy": lambda: entropy.measure(bench(), given.rounds),
            "naive": lambda: answered("naive"),
            "ircot": lambda: answered("ircot"),
            "bm25": lambda: bm25_batches.measure(
                passages=given.passages, queries=given.queries, rounds=given.rounds
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
