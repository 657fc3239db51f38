"""Gates that go by a draft against a coin, over tokens, with the kept part of prompts counted less.

    PYTHONPATH=benchmarks python benchmarks/experiments/drafts.py [--limit 200] [--train 60]
        [--seed 0] [--threads 32] [--workflow ircot] [--cached 1 --cached 0.1 --cached 0] [--json]

Questions, worlds and abstentions are those of `benchmarks/budget.py`. A draft's prompt is one that
the reader has just read, but for its last line, so with a prefix cache a draft takes its own tokens
only. `--cached` is what a prompt token counts that an earlier request of the same run has left in
the cache; it counts so in the workflow's own requests, too. The coin (`random:P`) asks for no
draft. A gate's frontier is the upper concave hull of its settings and of `never` and `native`; its
area is the mean share of right answers over the tokens between those two. Differences are paired by
question, with 95 % intervals of the bootstrap.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from budget import (
    OTHER,
    OWN,
    RESAMPLES,
    QuestionPath,
    Together,
    best_threshold,
    collect,
    together,
    worth,
)

from hopscope.api import parts
from hopscope.lab.budget.ends import own_tokens
from hopscope.lab.budget.frontier import Sweep, compare
from hopscope.lab.budget.paths import moments
from hopscope.lab.budget.sweeps import SETTINGS
from hopscope.runtime import components
from hopscope.runtime.ports import Moment, Reader
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import Usage
from hopscope.tracing import policies
from hopscope.tracing.signals.draft import draft
from hopscope.tracing.wrappers.metered import MeteredReader
from hopscope.tracing.wrappers.prefix_counting import PrefixCountingReader

COIN = "random"
GATES = ("margin", "entropy", "maxentropy", "logprob", "flare")
"""All of them ask for one draft before each retrieval."""


class Asked(NamedTuple):
    """A question with what its drafts took."""

    path: QuestionPath
    at: list[Moment]
    drafts: list[Usage]
    """Before each retrieval."""


def asked(each: QuestionPath, reader: Reader) -> Asked:
    at = moments(each.runs[-1])
    counting = PrefixCountingReader(reader)
    metered = MeteredReader(counting)
    spent, known = [], 0
    for moment in at:
        counting.recall(moment.steps[known:])
        known = len(moment.steps)
        draft(moment, metered)
        spent.append(metered.take())
    return Asked(each, at, spent)


def stops(policy: str, setting: str, found: Sequence[Asked], reader: Reader) -> list[int]:
    """Where the policy stops; the number of retrievals if it never refuses."""
    made = components.named(policies, Spec(policy, setting))()
    return [
        next((t for t, m in enumerate(a.at) if not made.decide(m, reader).retrieve), len(a.at))
        for a in found
    ]


def swept(
    name: str,
    at: Mapping[str, Sequence[int]],
    found: Sequence[Asked],
    right: Sequence[Sequence[float]],
    weight: float,
) -> Sweep:
    costs, utilities = [], []
    for places in at.values():
        costs.append(
            [
                own_tokens(a.path.runs[t].steps, cached=weight)
                + (sum(u.weighed(weight) for u in a.drafts[: t + 1]) if name in GATES else 0.0)
                for a, t in zip(found, places, strict=True)
            ]
        )
        utilities.append([row[t] for row, t in zip(right, places, strict=True)])
    return Sweep(name, tuple(at), np.array(costs), np.array(utilities), np.array([*at.values()]))


def measure(given: argparse.Namespace) -> dict[str, Any]:
    with together(parts.TINY, given.threads) as by:
        return measured(given, by)


def measured(given: argparse.Namespace, by: Together) -> dict[str, Any]:
    reader = by.reader
    learning = collect(OTHER + given.seed, given.train, given.workflow, by)
    threshold = best_threshold(learning)
    judged = collect(OWN + given.seed, given.limit, given.workflow, by)
    found = [asked(each, reader) for each in judged]
    right = [[worth(run, threshold) for run in each.path.runs] for each in found]
    placed = {
        name: {s: stops(name, s, found, reader) for s in SETTINGS[name]} for name in (*GATES, COIN)
    }
    ends = {"never": {"": [0] * len(found)}, "native": {"": [len(a.at) for a in found]}}
    used = sum((u for a in found for u in a.drafts[1:]), Usage())
    drafts = max(1, sum(len(a.drafts[1:]) for a in found))
    rows = []
    for weight in given.cached:
        never, native = (swept(name, at, found, right, weight) for name, at in ends.items())
        compared = compare(
            [swept(name, at, found, right, weight) for name, at in placed.items()],
            never=never,
            native=native,
            reference=COIN,
            resamples=RESAMPLES,
            seed=given.seed,
        )
        rows.append({"cached": weight, **compared.model_dump(mode="json")})
    return {
        "seed": given.seed,
        "workflow": given.workflow,
        "questions": len(found),
        "abstains_below": threshold,
        "tokens_of_a_draft": used.tokens / drafts,
        "not_cached_of_a_draft": used.weighed(0) / drafts,
        "weights": rows,
    }


def show(found: dict[str, Any]) -> None:
    print(
        f"{found['workflow']}, seed {found['seed']}, {found['questions']} questions; a draft after "
        f"the first search takes {found['tokens_of_a_draft']:.0f} tokens, "
        f"{found['not_cached_of_a_draft']:.0f} of them not cached"
    )
    for row in found["weights"]:
        print(f"cached tokens count {row['cached']:g}: {row['lowest']:.0f} to {row['highest']:.0f}")
        for each in sorted(row["frontiers"], key=lambda each: -each["area"]["value"]):
            area = each["area"]
            against = f"{-area['difference']:+.3f} [{-area['high']:+.3f}, {-area['low']:+.3f}]"
            print(f"  {each['policy']:12} {area['value']:.3f}  above the coin {against}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=200, help="questions judged on")
    parser.add_argument("--train", type=int, default=60, help="for the threshold of abstaining")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workflow", choices=["ircot", "self_ask"], default="ircot")
    parser.add_argument("--cached", type=float, action="append")
    parser.add_argument("--threads", type=int, default=32, help="questions at a time")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.cached = given.cached or [1.0, 0.1, 0.0]
    found = measure(given)
    if given.json:
        json.dump(found, sys.stdout, indent=2)
    else:
        show(found)


if __name__ == "__main__":
    main()
