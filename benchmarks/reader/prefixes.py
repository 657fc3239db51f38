"""The savings by kept prefixes and by batches of several threads, on Hopland.

IRCoT runs with all meters and rules, by the embedded reader: without kept prefixes, with them, and
with them by several threads that share the reader. Needed tokens are each distinct beginning of a
prompt and its replies, once; forwarded are all positions of all passes. Seconds are processor time.

    python benchmarks/reader/prefixes.py [--limit 20] [--threads 8] [--json]
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import perf_counter, process_time
from typing import Any

from hopscope.api import parts
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Generation, GenerationRequest, Question, Scored, ScoreRequest
from hopscope.runtime.wrappers.scheduled_reader import ScheduledReader

Values = list[float | None]
Node = dict[int, Any]


class Counted:
    """The reader, with a record of the needed tokens."""

    def __init__(self, reader: Any) -> None:
        self.name = reader.name
        self._reader = reader
        self._read: Node = {}
        self.needed = 0

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        found: list[list[Generation]] = self._reader.generate(requests)
        for request, replies in zip(requests, found, strict=True):
            prompt = self._reader._renderer.prompt_ids(request.prompt)
            for reply in replies:
                # The last drawn token is read only if another follows it.
                ended = reply.finish_reason == "eos"
                self._note([*prompt, *(reply.token_ids if ended else reply.token_ids[:-1])])
        return found

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        found: list[Scored] = self._reader.score(requests)
        for request, scored in zip(requests, found, strict=True):
            prompt = self._reader._renderer.prompt_ids(request.prompt)
            self._note([*prompt, *scored.token_ids[:-1]])
        return found

    def _note(self, ids: Sequence[int]) -> None:
        node = self._read
        for token in ids:
            if token not in node:
                node[token] = {}
                self.needed += 1
            node = node[token]


def measure(limit: int, threads: int) -> dict[str, dict[str, float]]:
    asked = [item.question for item in hopland.questions("dev")][:limit]
    reference: list[Values] = []
    found: dict[str, dict[str, float]] = {}
    for name, spec, at_once in (
        ("no prefix kept", "tiny,prefix_cache=0", 1),
        ("prefixes kept", "tiny", 1),
        (f"{threads} threads", "tiny", threads),
    ):
        reader: Any = parts.reader(spec)
        counted = Counted(reader)
        begun, wall = process_time(), perf_counter()
        with ScheduledReader(counted, callers=at_once) as shared:
            answer = worker(shared if at_once > 1 else counted)
            with ThreadPoolExecutor(at_once) as pool:
                values = list(pool.map(answer, asked))
        spent = {"seconds": process_time() - begun, "wall seconds": perf_counter() - wall}
        reference = reference or values
        found[name] = {
            **spent,
            "passes": reader.forwarded.passes,
            "forwarded": reader.forwarded.tokens,
            "reused": reader.forwarded.reused,
            "needed": counted.needed,
            "forwarded over needed": reader.forwarded.tokens / counted.needed,
            "credits that differ": differing(values, reference),
        }
    return found


def worker(reader: Any) -> Callable[[Question], Values]:
    """Runs a question and appraises the run; gives the values of all credits."""
    judge = parts.entailment("lexical")
    deps = Deps(reader=reader, retriever=parts.corpus("hopland"), entailment=judge, seed=0)
    workflow = parts.workflow("ircot", {})

    def answer(question: Question) -> Values:
        done = run(workflow, question, replace(deps))
        credits = Appraiser(reader, judge, Measuring(samples=10, seed=0)).appraise(done).credits
        return [credit.measurement.value for credit in credits]

    return answer


def differing(values: list[Values], reference: list[Values]) -> float:
    """The share of credits that differ by more than 1e-4 from the reference."""
    pairs = [
        pair
        for ours, theirs in zip(values, reference, strict=True)
        for pair in zip(ours, theirs, strict=True)
    ]
    return sum(
        (one is None) != (other is None) or abs((one or 0.0) - (other or 0.0)) > 1e-4
        for one, other in pairs
    ) / len(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=20, help="questions")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.limit < 1 or given.threads < 2:
        parser.error("--limit of 1 or more and --threads of 2 or more are needed")
    found = measure(given.limit, given.threads)
    if given.json:
        json.dump(found, sys.stdout, indent=2)
        return
    names = list(next(iter(found.values())))
    print(f"| | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for name, row in found.items():
        print(f"| {name} | {' | '.join(f'{value:.4g}' for value in row.values())} |")


if __name__ == "__main__":
    main()
