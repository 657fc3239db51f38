"""How often a reader that searches by itself answers the questions of the shipped corpus.

    python -m hopscope.lab.hopland.evaluation.evaluate_search --model FOLDER [--n N] [--hops N]

Questions of the test split, of all kinds, by number of hops; the workflow `search_agent` with its
default options over BM25. Short answers over given passages, as meters ask for them, are measured
beside it, on other worlds.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from hopscope import workflows
from hopscope.lab.hopland.cases import Check, cases, share
from hopscope.lab.hopland.evaluation.evaluate import short
from hopscope.runtime import components
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Reader
from hopscope.runtime.readers import hf
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.texts.answers import exact_match
from hopscope.runtime.types import Run

HOPS = (1, 2, 3, 4)


def answered(reader: Reader, hops: int, n: int) -> list[tuple[Run, bool]]:
    """Runs of questions of so many hops, and whether each answer is exactly right."""
    asked = [question for question in hopland.questions("test") if question.hops == hops]
    chosen = random.Random(hops).sample(asked, min(n, len(asked)))
    deps = Deps(reader=reader, retriever=bm25.from_passages(hopland.corpus(), name="hopland"))
    built = components.load(workflows, "search_agent").build()
    found = []
    for each in chosen:
        result = run(Workflow("search_agent", built, {}), each.question, deps)
        right = exact_match(result.answer or "", each.question.answers)
        found.append((result, bool(right)))
    return found


def figures(reader: Reader, n: int, hops: Sequence[int] = HOPS) -> list[Check]:
    """Shares of right answers and of runs that end with one in the form."""
    found, runs = [], []
    for count in hops:
        pairs = answered(reader, count, n)
        runs += [result for result, _ in pairs]
        wanted = ">= .85" if count == 2 else ""
        found.append(share(f"{count} hops, search agent", [right for _, right in pairs], wanted))
    formed = [result.stop_reason == "answer_marker" for result in runs]
    found.append(share("ended with an answer in the form", formed))
    for count in (1, 2):
        drawn = [(case.asked, case.full) for case in cases(count, n)]
        found.append(share(f"{count} hops, short answer", short(reader, drawn)))
    return found


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description="Measure a Hopland reader that searches.")
    parser.add_argument("--model", type=Path, required=True, help="folder of the reader")
    parser.add_argument("--n", type=int, default=200, help="questions of each cell")
    parser.add_argument("--hops", type=int, nargs="+", choices=HOPS, default=HOPS)
    given = parser.parse_args()
    if given.n < 1:
        parser.error("--n of 1 or more is needed")
    reader = hf.build(model=str(given.model), device="cpu", dtype="float32")
    for check in figures(reader, given.n, given.hops):
        of = check.measurement
        between = "" if of.low is None else f"[{of.low:.3f}, {of.high:.3f}]"
        print(f"{check.name:36} {of.value:.3f}  {between:16} n {of.n:4}  {check.wanted}")


if __name__ == "__main__":
    main()
