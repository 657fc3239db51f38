"""The error of sampled Shapley credit: antithetic permutations and KernelSHAP.

Games of ten players with exact shares from all 1,024 coalitions. Both samplings draw the same
number of coalitions; the cost is the number of distinct ones, as equal ones are measured once. For
each, over all seeds: the root mean square error of a share, for values from 0 to 1; the coverage of
the 95 % interval; the share of players without effect that get exactly 0.

    redundant    any complete one of three pairs of passages suffices
    chain        all of four passages are needed, the others help nothing
    additive     each passage adds its own
    crowded      a passage helps, and every further one less
    noise        any value for any coalition

    OMP_NUM_THREADS=1 python benchmarks/estimation/shapley.py [--seeds 20] [--json]
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from math import sqrt
from typing import get_args

from hopscope.runtime.types import Measurement, Passage, Question
from hopscope.tracing.credit import shapley
from hopscope.tracing.games.coalitions import Coalitions, EvidenceValues
from hopscope.tracing.games.frozen import FrozenGame, Slot

PLAYERS = 10
ORDERS = (8, 16, 64)
"""Orders of joining, for the permutations; KernelSHAP draws as many coalitions."""

Game = Callable[[frozenset[int]], float]


def games(seed: int) -> dict[str, Game]:
    draw = random.Random(seed)
    worth = [draw.random() / PLAYERS for _ in range(PLAYERS)]
    noise = [draw.random() for _ in range(1 << PLAYERS)]
    pairs = [frozenset(pair) for pair in ((0, 1), (2, 3), (4, 5))]
    return {
        "redundant": lambda there: float(any(pair <= there for pair in pairs)),
        "chain": lambda there: float(frozenset(range(4)) <= there),
        "additive": lambda there: sum(worth[player] for player in there),
        "crowded": lambda there: sqrt(sum(worth[player] for player in there)),
        "noise": lambda there: noise[sum(1 << player for player in there)],
    }


class Meter:
    """A meter with the game's values, for passages named after the players."""

    name = "game"

    def __init__(self, game: Game) -> None:
        self._game = game
        self.asked = 0

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        self.asked += len(evidences)
        return [
            Measurement(value=self._game(frozenset(int(passage.id) for passage in evidence)))
            for evidence in evidences
        ]


def played(game: Game) -> tuple[Coalitions, Meter]:
    slots = tuple(
        Slot(Passage(id=str(t), text=str(t)), frozenset({t}), None) for t in range(PLAYERS)
    )
    meter = Meter(game)
    values = EvidenceValues(Question(text=""), meter)
    return Coalitions(FrozenGame(tuple(range(PLAYERS)), slots), values), meter


def exact(game: Game) -> list[float]:
    coalitions, _ = played(game)
    shares = shapley.exact(range(PLAYERS))
    return [coalitions.combine(shares[t], "exact").value or 0.0 for t in range(PLAYERS)]


def changes_nothing(game: Game, player: int) -> bool:
    everyone = [
        frozenset(p for p in range(PLAYERS) if bits >> p & 1) for bits in range(1 << PLAYERS)
    ]
    return all(game(there) == game(there | {player}) for there in everyone)


def compare(name: str, seeds: int) -> dict[str, dict[str, float]]:
    """The results by sampling and number of orders."""
    found: dict[str, dict[str, float]] = {}
    truths = [(game := games(seed)[name], exact(game)) for seed in range(seeds)]
    null = {p for p in range(PLAYERS) if changes_nothing(truths[0][0], p)}
    for orders in ORDERS:
        for sampling in get_args(shapley.Sampling):
            errors, held, zeros, asked = [], [], [], []
            for seed, (game, truth) in enumerate(truths):
                rule = shapley.build(permutations=orders, seed=seed, sampling=sampling)
                coalitions, meter = played(game)
                for player, share in enumerate(rule.share(coalitions)):
                    assert share.value is not None
                    assert share.low is not None
                    assert share.high is not None
                    errors.append((share.value - truth[player]) ** 2)
                    held.append(share.low - 1e-9 <= truth[player] <= share.high + 1e-9)
                    zeros += [share.value == 0] if player in null else []
                asked.append(meter.asked)
            found[f"{sampling} {orders}"] = {
                "coalitions": sum(asked) / len(asked),
                "error": sqrt(sum(errors) / len(errors)),
                "coverage": sum(held) / len(held),
                **({"zeros": sum(zeros) / len(zeros)} if zeros else {}),
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    results = {name: compare(name, given.seeds) for name in games(0)}
    if given.json:
        json.dump(results, sys.stdout, indent=2)
        return
    for name, found in results.items():
        print(name)
        for which, row in found.items():
            cells = "  ".join(f"{key} {value:8.4f}" for key, value in row.items())
            print(f"  {which:18s} {cells}")


if __name__ == "__main__":
    main()
