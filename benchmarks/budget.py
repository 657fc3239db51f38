"""Savings by the learned value of information on Hopland, against the other policies.

Each seed has a test world that the reader has never seen and a training world; their questions need
none, one, two or three retrievals, or have no answer. An answer whose least probable token is below
a threshold, chosen on the training questions, counts as an abstention, which is right for questions
without an answer; the same holds for all policies. The workflow runs with at most 0, 1, ...
retrievals, so the result of every policy is known. The cost of all signals counts.

    python benchmarks/budget.py [--limit 1000] [--train 1000] [--seed 0] [--seeds 3]
                                [--workflow ircot] [--cached 1] [--threads 32] [--only POLICY ...]
                                [--json]

`--cached` is what a prompt token counts that an earlier request of the same run has left in the
reader's cache. `--threads` questions share the reader's passes. `--only` tries these policies
besides the learned ones.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import exp
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from hopscope.api import parts
from hopscope.api.views.render import out
from hopscope.lab.budget import fit
from hopscope.lab.budget.frontier import FrontierComparison, Sweep, grid, summary
from hopscope.lab.budget.paths import moments, path
from hopscope.lab.budget.questions import Posed, mixture
from hopscope.lab.budget.stored import Walked
from hopscope.lab.budget.sweeps import SETTINGS, Swept, sweep
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Reader
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.texts.answers import exact_match
from hopscope.runtime.types import Run
from hopscope.runtime.wrappers.scheduled_reader import ScheduledReader
from hopscope.tracing.policies import fixed
from hopscope.tracing.wrappers.cached import CachedReader

OWN, OTHER = 7_000_000, 8_000_000
"""Of the worlds of the questions judged on and learned from."""
READERS = {"search_agent": f"{parts.TINY}:search"}
UNITS: tuple[Literal["tokens", "retrievals"], ...] = ("tokens", "retrievals")
WORKFLOWS = ("ircot", "iter_retgen", "self_ask", "flare", "search_agent")
RESAMPLES = 1000
Given = TypeVar("Given")
Made = TypeVar("Made")


class QuestionPath(NamedTuple):
    """A question with its runs of 0, 1, ... retrievals; the last without a limit."""

    posed: Posed
    runs: tuple[Run, ...]


def confidence(result: Run) -> float:
    """Probability of the last answer's least probable token."""
    told = [
        g for s in result.steps if s.kind == "generate" for e in s.exchanges for g in e.generations
    ]
    logprobs = told[-1].logprobs if told else ()
    return exp(min(logprobs, default=0.0))


def worth(result: Run, threshold: float) -> float:
    """1 if the answer is right, or rightly withheld."""
    abstains = confidence(result) < threshold
    golds = result.question.answers
    return (
        float(abstains)
        if not golds
        else float(not abstains) * exact_match(result.answer or "", golds)
    )


class Together:
    """A reader whose passes several questions share."""

    def __init__(self, inner: Reader, threads: int) -> None:
        self.reader = CachedReader(inner, size=1_000_000)
        self._pool = ThreadPoolExecutor(threads)

    def map(self, name: str, of: Callable[[Given], Made], each: Sequence[Given]) -> Iterator[Made]:
        """In order, with a count on the screen."""
        for number, made in enumerate(self._pool.map(of, each), start=1):
            print(f"\r{name} {number} of {len(each)}", end="", file=sys.stderr)
            yield made
        print(file=sys.stderr)


@contextmanager
def together(named: str, threads: int) -> Iterator[Together]:
    with ScheduledReader(parts.reader(named), callers=threads) as shared:
        yield Together(shared, threads)


def collect(world: int, count: int, workflow: str, by: Together) -> list[QuestionPath]:
    made = mixture(world, count)
    deps = Deps(
        reader=by.reader,
        retriever=bm25.from_passages(made.passages, name=f"hopland-{world}"),
        capture_content=False,
    )
    built = parts.workflow(workflow, {})

    def runs(posed: Posed) -> QuestionPath:
        native = run(built, posed.question, deps)
        if native.status != "ok":
            raise SystemExit(f"{posed.question.text}: {native.error}")
        retrievals = len(moments(native))
        limits = (fixed.build(k=k) for k in range(retrievals))
        shorter = (run(built, posed.question, Deps(**{**vars(deps), "policy": p})) for p in limits)
        return QuestionPath(posed, (*shorter, native))

    return [*by.map(f"world {world}, question", runs, made.questions)]


def walks(
    asked: Sequence[QuestionPath], by: Together, threshold: float, cached: float
) -> list[Walked]:
    def walk(each: QuestionPath) -> Walked:
        right, need = (lambda r: worth(r, threshold)), each.posed.need
        found = path(each.runs, by.reader, right, need, cached=cached)
        return Walked(found, tuple(moments(each.runs[-1])))

    return [*by.map("signals of question", walk, asked)]


def best_threshold(asked: Sequence[QuestionPath]) -> float:
    """The threshold of abstention that is best for the workflow's own stop."""
    candidates = [
        0.0,
        *np.quantile([confidence(a.runs[-1]) for a in asked], np.arange(0.02, 0.6, 0.02)),
    ]
    return float(max(candidates, key=lambda t: sum(worth(a.runs[-1], t) for a in asked)))


def means(each: Sweep) -> list[dict[str, Any]]:
    return [
        {
            "setting": s,
            "right": float(u.mean()),
            "tokens": float(c.mean()),
            "retrievals": float(r.mean()),
        }
        for s, u, c, r in zip(each.settings, each.utilities, each.costs, each.stops, strict=True)
    ]


def measure(seed: int, given: argparse.Namespace) -> dict[str, Any]:
    with together(READERS.get(given.workflow, parts.TINY), given.threads) as by:
        return measured(seed, given, by)


def measured(seed: int, given: argparse.Namespace, by: Together) -> dict[str, Any]:
    workflow, cached, reader = given.workflow, given.cached, by.reader
    learning = collect(OTHER + seed, given.train, workflow, by)
    threshold = best_threshold(learning)
    learned = [each.path for each in walks(learning, by, threshold, cached)]
    asked = collect(OWN + seed, given.limit, workflow, by)
    judged = walks(asked, by, threshold, cached)
    swept = sweep(
        judged,
        reader,
        fitting=fit.Fitting(seed=seed),
        train=learned,
        seed=seed,
        cached=cached,
        settings={name: SETTINGS[name] for name in given.only or SETTINGS},
        progress=lambda name: print(name, end=" ", file=sys.stderr, flush=True),
    )
    print(file=sys.stderr)
    return {
        "seed": seed,
        "questions": len(judged),
        "learned_from": len(learned),
        "abstains_below": threshold,
        "missing": swept.missing,
        "points": {
            each.policy: means(each)
            for each in (swept.never, swept.native, swept.oracle, *swept.policies)
        },
        "goals": goals(swept),
        **{
            unit: swept.compared(unit, resamples=RESAMPLES, seed=seed).model_dump(mode="json")
            for unit in UNITS
        },
    }


def goals(swept: Swept) -> dict[str, Any]:
    """What was aimed at, of the setting of `value` that comes nearest."""
    by_name = {each.policy: each for each in swept.policies}
    best_fixed = max(means(by_name.get("fixed", swept.native)), key=lambda row: row["right"])
    (oracle,), (native,) = means(swept.oracle), means(swept.native)
    good = [row for row in means(by_name["value"]) if row["right"] >= 0.98 * best_fixed["right"]]
    chosen = min(good, key=lambda row: row["retrievals"], default=None)
    equal = [row for row in means(by_name["value"]) if row["right"] >= native["right"]]
    return {
        "best_fixed": best_fixed,
        "native": native,
        "oracle": oracle,
        "value_at_98_percent": chosen,
        "retrievals_by_oracle": chosen and chosen["retrievals"] / max(1e-9, oracle["retrievals"]),
        "value_as_right_as_native": min(equal, key=lambda row: row["tokens"], default=None),
    }


def show(row: dict[str, Any]) -> None:
    print(f"seed {row['seed']}, {row['learned_from']} questions learned from")
    for unit in ("tokens", "retrievals"):
        compared = FrontierComparison.model_validate(row[unit])
        out().print(summary(compared, unit=unit), grid(compared, unit=unit), sep="\n")
    for name, found in row["goals"].items():
        print(f"{name:26} {found}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=1000, help="questions judged on")
    parser.add_argument("--train", type=int, default=1000, help="questions learned from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="so many seeds from that on")
    parser.add_argument("--workflow", choices=WORKFLOWS, default="ircot")
    parser.add_argument("--cached", type=float, default=1.0, help="weight of a cached token")
    parser.add_argument("--threads", type=int, default=32, help="questions at a time")
    parser.add_argument("--only", action="append", choices=[*SETTINGS])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = []
    for seed in range(given.seed, given.seed + given.seeds):
        rows.append(measure(seed, given))
        if not given.json:
            show(rows[-1])
    if given.json:
        json.dump(rows, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
