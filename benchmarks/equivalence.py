"""Speed of the embedded equivalence model: pairs of answer and gold per second, on one core.

Without FILE it uses generated answers from Hopland: ten answers per question against its gold, in
both directions, as for a belief. With FILE, human judgements in EVOUNA's format, it also measures
answers against all aliases at once; a pair is one answer and one alias. Seconds are processor time,
the fastest of three rounds. --than also prints the ratio to an earlier version's --json output.

    OMP_NUM_THREADS=1 python benchmarks/equivalence.py [FILE] [--json] [--than JSON]
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from hopscope.lab.equivalence.data import judgements
from hopscope.runtime.corpora import hopland
from hopscope.runtime.ports import Statement
from hopscope.tracing.entailments import equivalence

ROUNDS = 3
QUESTIONS = 300
ANSWERS = 10
MOST = 500
"""Questions of FILE."""


def statements() -> list[Statement]:
    """Ten answers to each question, three of them different ones, against the gold both ways."""
    asked = list(islice(hopland.questions("test"), QUESTIONS))
    golds = [item.question.answers[0] for item in asked]
    found = []
    for number, item in enumerate(asked):
        others = [golds[(number + shift) % len(golds)] for shift in (1, 2)]
        drawn = [golds[number], *others, f"The answer is {golds[number]}."] * 3
        for answer in drawn[:ANSWERS]:
            found.append(Statement(item.question.text, answer, golds[number]))
            found.append(Statement(item.question.text, golds[number], answer))
    return found


def rate(pairs: int, work: Callable[[], object]) -> int:
    """Pairs a second."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return round(pairs / best)


def measure(file: Path | None) -> dict[str, int]:
    model = equivalence.build()
    asked: Sequence[Statement] = statements()
    rates = {"replies and golds": rate(len(asked), lambda: model.classify(asked))}
    if file is None:
        return rates
    judged = judgements(file)[:MOST]
    answered = [row.answered(system) for row in judged for system in row.answers]
    pairs = sum(len(row.golds) for row in answered)
    first = [Statement(row.question, row.answer, row.golds[0]) for row in answered]
    return {
        **rates,
        "answers and all aliases": rate(pairs, lambda: model.correctness(answered)),
        "answers and their first alias": rate(len(first), lambda: model.classify(first)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", help="judgements in EVOUNA's format")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--than", type=Path, metavar="JSON", help="rates to compare with")
    given = parser.parse_args()
    before: dict[str, int] = json.loads(given.than.read_text()) if given.than else {}
    rates = measure(given.file)
    if given.json:
        json.dump(rates, sys.stdout, indent=2)
        return
    for name, pairs in rates.items():
        ratio = f"  {pairs / before[name]:.2f} times {before[name]:,d}" if name in before else ""
        print(f"{name:32s} {pairs:8,d} pairs/s{ratio}")


if __name__ == "__main__":
    main()
