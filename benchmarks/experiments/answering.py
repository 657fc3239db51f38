"""Passes of the reader for a question, by the number of questions at a time.

Questions of Hopland are answered by the embedded reader, without meters: one after the other, in
batches that wait for their longest reply, and with requests that join a running decode. All ways
take turns in one process, each with a reader of its own; seconds are processor time, without that
of making the index and loading the reader. Rows a pass
counts the tokens drawn by a pass that reads no prompt.

    OMP_NUM_THREADS=1 python benchmarks/experiments/answering.py [--limit 50] [--rounds 2] [--json]
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import process_time, thread_time
from typing import Any, NamedTuple

from hopscope.api import parts
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.generation.forwarding import Forwarder
from hopscope.runtime.ports import Retriever
from hopscope.runtime.types import Question
from hopscope.runtime.wrappers.scheduled_reader import ScheduledReader


class Way(NamedTuple):
    """A way to answer."""

    threads: int
    continuous: bool

    def __str__(self) -> str:
        if self.threads == 1:
            return "1"
        return f"{self.threads}, {'joining' if self.continuous else 'in batches'}"


class Tally:
    """What a way has cost so far."""

    def __init__(self) -> None:
        self.reader: Any = parts.reader("tiny")
        self.passes = Passes()
        self.seconds = 0.0
        self.answers: list[str | None] = []

    def figures(self, questions: int, base: float) -> dict[str, float | int]:
        drawn = [rows for rows, columns in self.passes.shapes if columns == 1]
        return {
            "passes a question": len(self.passes.shapes) / questions,
            "reading": (len(self.passes.shapes) - len(drawn)) / questions,
            "rows a pass": sum(drawn) / len(drawn),
            "ms a question": 1000 * self.seconds / questions,
            "of it in passes": 1000 * self.passes.seconds / questions,
            "ratio": self.seconds / base,
        }


def measure(workflow: str, ways: list[Way], limit: int, rounds: int) -> dict[str, Any]:
    asked = [item.question for item in hopland.questions("dev")][:limit]
    retriever = parts.corpus(parts.HOPLAND)
    tallies = {way: Tally() for way in ways}
    for place in range(rounds):
        for way, tally in tallies.items():
            with counted(tally.passes):
                begun = process_time()
                found = answered(workflow, way, tally.reader, retriever, asked)
                tally.seconds += process_time() - begun
            tally.answers = found
            if place + 1 < rounds:
                tally.reader = parts.reader("tiny")  # which remembers no prompt
    first = tallies[ways[0]]
    return {
        str(way): {
            **tally.figures(limit * rounds, first.seconds),
            "other answers": sum(a != b for a, b in zip(tally.answers, first.answers, strict=True)),
        }
        for way, tally in tallies.items()
    }


def answered(
    workflow: str,
    way: Way,
    reader: Any,
    retriever: Retriever,
    asked: list[Question],
    options: Mapping[str, str] | None = None,
) -> list[str | None]:
    """The answers by a workflow with these options."""

    def answer(reader: Any) -> Callable[[Question], str | None]:
        deps = Deps(
            reader=reader,
            retriever=retriever,
            entailment=parts.entailment("lexical"),
            seed=0,
        )
        built = parts.workflow(workflow, dict(options or {}))
        return lambda question: run(built, question, deps).answer

    if way.threads == 1:
        return [*map(answer(reader), asked)]
    with (
        ScheduledReader(reader, callers=way.threads, continuous=way.continuous) as shared,
        ThreadPoolExecutor(way.threads) as pool,
    ):
        return list(pool.map(answer(shared), asked))


class Passes:
    """Passes of the reader."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []
        """Rows and columns of each."""
        self.seconds = 0.0
        """Processor time of all."""


@contextmanager
def counted(passes: Passes) -> Iterator[None]:
    """Add the forward passes inside: of each the rows, and the most tokens of one."""
    forward, together = Forwarder.forward, Forwarder.together

    def counting(self: Forwarder, ids: Any, *rest: Any, **options: Any) -> Any:
        passes.shapes.append(tuple(ids.shape))
        begun = thread_time()
        found = forward(self, ids, *rest, **options)
        passes.seconds += thread_time() - begun
        return found

    def counting_parts(self: Forwarder, parts: Any, **options: Any) -> Any:
        if not self.joins:
            return together(self, parts, **options)
        rows, columns = zip(*(part.ids.shape for part in parts), strict=True)
        passes.shapes.append((sum(rows), max(columns)))
        begun = thread_time()
        found = together(self, parts, **options)
        passes.seconds += thread_time() - begun
        return found

    changed: Any = Forwarder
    changed.forward, changed.together = counting, counting_parts
    try:
        yield
    finally:
        changed.forward, changed.together = forward, together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=50, help="questions")
    parser.add_argument("--rounds", type=int, default=2, help="times that each way takes its turn")
    parser.add_argument("--threads", type=int, action="append", help="by default 16 and 50")
    parser.add_argument("--workflow", action="append", help="by default naive and ircot")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    many = given.threads or [16, 50]
    if min(given.limit, given.rounds, *many) < 1:
        parser.error("--limit, --rounds and --threads of 1 or more are needed")
    ways = [Way(1, False), *(Way(n, way) for n in many for way in (False, True) if n > 1)]
    found = {
        name: measure(name, ways, given.limit, given.rounds)
        for name in given.workflow or ["naive", "ircot"]
    }
    if given.json:
        json.dump(found, sys.stdout, indent=2)
        return
    columns = list(next(iter(next(iter(found.values())).values())))
    print(f"| workflow | questions at a time | {' | '.join(columns)} |")
    print(f"|---|---|{'--:|' * len(columns)}")
    for name, rows in found.items():
        for way, row in rows.items():
            print(f"| {name} | {way} | {' | '.join(f'{value:.3g}' for value in row.values())} |")


if __name__ == "__main__":
    main()
