"""Queries a second of `hopscope serve search` beside its index called in process.

    python benchmarks/serving/search_server.py [--passages N] [--clients 32] [--rounds 5] [--json]

The index is BM25 over generated passages (`benchmarks/generated.py`), or with `--index hopland` the
embedded one. 32 clients on connections of their own each wait for an answer before they ask again:
`batch` posts 64 queries at once, as Search-R1's trainer sends the queries of a step in one request;
`single` posts one, as an agent does. The clients are one process of raw sockets with requests made
beforehand, so that they take little of the machine. In process, the index is called with the same
queries, 64 or one at a time. Both take turns; the ratio is the median over the rounds of the
server's queries a second divided by those in process, with a 95 % percentile bootstrap (seed 0).
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import generated

BATCHES = {"batch": 64, "single": 1}
K = 3
SECONDS = 4.0
RESAMPLES, ENDS = 10_000, (2.5, 97.5)
READY = " is served at http://"


def requests(queries: Sequence[str], size: int, place: str) -> list[bytes]:
    """The requests of all queries, so many in each."""
    made = []
    for start in range(0, len(queries) - size + 1, size):
        asked = {"queries": queries[start : start + size], "topk": K, "return_scores": True}
        body = json.dumps(asked).encode()
        head = f"POST /retrieve HTTP/1.1\r\nHost: {place}\r\nContent-Type: application/json\r\n"
        made.append(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return made


async def asked(place: str, made: Sequence[bytes], clients: int, seconds: float) -> float:
    """Answered requests a second."""
    host, _, port = place.partition(":")
    waiting, answered = cycle(made), 0
    end = perf_counter() + seconds

    async def client() -> None:
        nonlocal answered
        reader, writer = await asyncio.open_connection(host, int(port))
        while perf_counter() < end:
            writer.write(next(waiting))
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode())
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
            await reader.readexactly(int(length))
            answered += 1
        writer.close()

    begun = perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return answered / (perf_counter() - begun)


def in_process(index: Any, queries: Sequence[str], size: int, seconds: float) -> float:
    """Queries a second."""
    done, begun = 0, perf_counter()
    for start in cycle(range(0, len(queries) - size + 1, size)):
        index.search(queries[start : start + size], k=K)
        done += size
        if perf_counter() - begun > seconds:
            return done / (perf_counter() - begun)
    raise AssertionError


def summary(ratios: Sequence[float]) -> dict[str, float]:
    values = np.array(ratios)
    draw = np.random.default_rng(0)
    medians = np.median(values[draw.integers(len(values), size=(RESAMPLES, len(values)))], axis=1)
    low, high = np.percentile(medians, ENDS)
    return {"ratio": float(np.median(values)), "low": float(low), "high": float(high)}


def index_in(folder: Path, passages: int) -> str:
    from hopscope.runtime.retrievers import bm25

    where = folder / f"bm25-{passages}"
    if not where.exists():
        bm25.create(generated.passages(passages), where, name="generated")
    return str(where)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--index", help="another index than the generated one")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=BATCHES, action="append")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    from hopscope.api import retrieval

    name = given.index or index_in(given.folder, given.passages)
    index = retrieval.source(name)
    if given.index:
        from hopscope.runtime.corpora import hopland

        queries = [row.question.text for row in hopland.questions("dev")][:512]
    else:
        queries = generated.queries(2048)
    command = [sys.executable, "-m", "hopscope.cli", "serve", "search", name, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            place = next(line for line in server.stderr if READY in line)
            place = place.partition(READY)[2].split()[0]
            for part in given.only or BATCHES:
                size = BATCHES[part]
                made = requests(queries, size, place)
                asyncio.run(asked(place, made, given.clients, 1.0))
                rows = []
                for _ in range(given.rounds):
                    alone = in_process(index, queries, size, SECONDS)
                    served = asyncio.run(asked(place, made, given.clients, SECONDS)) * size
                    rows.append((alone, served))
                found = summary([served / alone for alone, served in rows])
                alone, served = np.median(np.array(rows), axis=0)
                row = {"part": part, "index": index.name, "clients": given.clients, **found}
                row |= {"in_process": float(alone), "served": float(served)}
                print(
                    json.dumps(row)
                    if given.json
                    else f"{part}: {served:,.0f} of {alone:,.0f} queries a second, ratio "
                    f"{row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}]",
                    flush=True,
                )
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
