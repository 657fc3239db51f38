"""AUROC of turn rewards for useful searches over several worlds, and where it is lost.

    python benchmarks/turn_rewards.py [--seeds 5] [--limit 100]

The searches of `hopscope lab --only turn_rewards --seed N`, of runs that found all gold, are pooled
over the seeds. A useful search loses pairs with the useless ones: because the belief did not rise
though all gold was there, because it holds without the search (leave-one-out below 0.25), or for
another reason.
"""

import argparse
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from statistics import mean

from hopscope.api import parts
from hopscope.lab.suites import worlds
from hopscope.lab.validity import turn_rewards
from hopscope.lab.validity.turn_rewards import SearchCase

RISEN, WITHOUT = 0.5, 0.25
"""A gain in belief of all searches from which it has risen; a loss without one search below which
the belief holds without it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=100)
    given = parser.parse_args()
    pooled: list[SearchCase] = []
    reader = parts.reader(parts.TINY)
    for seed in range(given.seeds):
        _, found = turn_rewards.cases(worlds.make(reader, seed=seed, limit=given.limit))
        whole = [case for case in found if case.whole]
        show(f"seed {seed}", whole)
        pooled += [case._replace(question=case.question + 10_000 * seed) for case in whole]
    show("all", pooled)
    for hops in sorted({case.hops for case in pooled}):
        show(f"{hops} hops", [case for case in pooled if case.hops == hops])
    for cause, (count, share) in losses(pooled).items():
        print(f"{cause}: {count} useful searches, {share:.0%} of the lost pairs")


def show(name: str, cases: Sequence[SearchCase]) -> None:
    useful = sum(case.useful for case in cases)
    runs = len({case.question for case in cases})
    print(f"{name}: {runs} runs, {useful} of {len(cases)} searches useful")
    for reward in cases[0].rewards if cases else ():
        found = turn_rewards.auroc(cases, reward, 0)
        value, low, high = (
            "-" if each is None else f"{each:.3f}" for each in (found.value, found.low, found.high)
        )
        print(f"  {reward}: {value} [{low}, {high}]", flush=True)


def losses(cases: Sequence[SearchCase]) -> dict[str, tuple[int, float]]:
    """By cause, the useful searches and their share of the pairs that Shapley by SePer loses."""
    useless = [value(case, "shapley") for case in cases if not case.useful]
    lost: dict[str, list[float]] = {}
    for _, searches in groupby(cases, attrgetter("question")):
        run = list(searches)
        useful = [case for case in run if case.useful]
        gain = sum(value(case, "trajectory") for case in run)
        for case in useful:
            own = value(case, "shapley")
            pairs = mean((other > own) + 0.5 * (other == own) for other in useless)
            lost.setdefault(cause(case, useful, gain), []).append(pairs)
    total = sum(map(sum, lost.values()))
    return {name: (len(pairs), sum(pairs) / total) for name, pairs in sorted(lost.items())}


def cause(case: SearchCase, useful: Sequence[SearchCase], gain: float) -> str:
    if gain < RISEN:
        return "belief did not rise"
    if value(case, "leave-one-out") >= WITHOUT:
        return "other"
    middle = case not in (useful[0], useful[-1])
    return f"belief holds without the {'middle search of three' if middle else 'first or last'}"


def value(case: SearchCase, rule: str) -> float:
    return case.rewards[f"seper, {rule}"] or 0.0


if __name__ == "__main__":
    main()
