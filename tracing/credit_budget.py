"""Credit within a budget of calls: which coalitions are measured, and with how many replies.

A call is one reply of the reader. The rules are served in order, leave-one-out first and Shapley
last: the coalitions that a rule needs get one reply each, or as many as the meter always draws.
Where the calls do not suffice for all coalitions, Shapley shares come from a sample stratified by
size, random orders with all their rotations, of at least two orders, so that there is a standard
error; where they do not suffice for that either, the rule is unmeasured and the reason names the
calls that it needs. The remaining calls go, a reply at a time, where they narrow the intervals of
all credits most.

The intervals are valid at any time: each evidence set's holds at every number of replies together
(Bonferroni over the numbers, `tracing.statistics.looks`), so that the choice may go by them. The
choice is Neyman's (1934) allocation, with the width of Clopper and Pearson's interval in the place
of the unknown deviation. The rule is ours.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from typing import NamedTuple

from hopscope.runtime.ports import DrawingMeter, SamplingMeter, UtilityMeter
from hopscope.runtime.types import Measurement, Passage
from hopscope.tracing.credit import leave_one_out, trajectory
from hopscope.tracing.credit.shapley import FEWEST_GROUPS, Shapley
from hopscope.tracing.games.coalitions import (
    EMPTY,
    Coalition,
    Coalitions,
    Content,
    Evidence,
    KnownEvidence,
    MissingEvidence,
)
from hopscope.tracing.games.rule import CreditRule, LinearRule, gain
from hopscope.tracing.statistics.intervals import clopper_pearson
from hopscope.tracing.statistics.looks import level_each

MARKERS = (KnownEvidence, MissingEvidence)
MOST_GROUPS = 64
AT_ONCE = 0.5
"""The share of the remaining calls that is spent before the intervals are looked at again."""


@dataclass(frozen=True)
class Plan:
    """What a budget buys, known before any call."""

    rules: tuple[tuple[CreditRule, ...], ...]
    """The rules that are measured, for each game."""
    reasons: tuple[Mapping[str, str], ...]
    """Why the others are not, by name, for each game."""
    evidences: Mapping[Content, Evidence]
    """Evidence sets that get a reply, in the order of the rules."""
    calls: int
    """Replies in all."""

    @property
    def passages(self) -> Iterator[tuple[Passage, ...]]:
        """The passages of each evidence set."""
        return (each for each in self.evidences.values() if not isinstance(each, MARKERS))


@dataclass(frozen=True)
class _Buying:
    """Evidence sets bought so far."""

    calls: int
    least: int
    """Replies that each costs."""
    held: frozenset[Content]
    """Evidence whose value is known already and costs nothing."""
    bought: dict[Content, None] = field(default_factory=dict)

    def price(self, keys: Iterable[Content]) -> int:
        return self.least * len({*keys} - self.held - self.bought.keys())

    @property
    def spent(self) -> int:
        return self.least * len(self.bought)

    def affordable(self, keys: Sequence[Content]) -> bool:
        return self.spent + self.price(keys) <= self.calls

    def buy(self, keys: Iterable[Content]) -> None:
        self.bought.update((key, None) for key in keys if key not in self.held)


class Replies(NamedTuple):
    """The replies that a meter draws to one evidence set."""

    least: int
    most: int


def replies(meter: UtilityMeter) -> Replies:
    """One to all samples of a meter that draws a few at a time, all samples of another that draws,
    and one call of a meter that does not."""
    most = meter.samples if isinstance(meter, DrawingMeter) else 1
    return Replies(1 if isinstance(meter, SamplingMeter) else most, most)


def plan(
    games: Sequence[Coalitions], rules: Sequence[Sequence[CreditRule]], calls: int, each: Replies
) -> Plan:
    """Which rules and evidence sets of these games the calls suffice for.

    Args:
        rules: the rules that apply to each game.
        each: replies to one evidence set.
    """
    buying = _Buying(calls, each.least, frozenset(k for game in games for k in game.values.known))
    chosen: list[list[CreditRule]] = [[] for _ in games]
    reasons: list[dict[str, str]] = [{} for _ in games]
    ends = [_contents(game, (EMPTY, game.full)) for game in games]
    for place in sorted({_rank(rule) for each in rules for rule in each}):
        for number, game in enumerate(games):
            for rule in (rule for rule in rules[number] if _rank(rule) == place):
                options = list(_affordable_forms(rule, game))
                needs = [[*ends[number], *_contents(game, r.needs(game.players))] for r in options]
                fit = [i for i, keys in enumerate(needs) if buying.affordable(keys)]
                if fit:
                    buying.buy(needs[fit[0]])
                    chosen[number].append(options[fit[0]])
                else:
                    least = buying.spent + min(map(buying.price, needs))
                    reasons[number][rule.name] = (
                        f"{rule.name} needs {least} calls, and the credit budget has {calls}"
                    )
    for keys in ends:
        if buying.affordable(keys):
            buying.buy(keys)
    of_content = {
        game.key(coalition): game.game.evidence(coalition)
        for game, its in zip(games, chosen, strict=True)
        for coalition in (EMPTY, game.full, *(c for rule in its for c in rule.needs(game.players)))
    }
    bought = {key: of_content[key] for key in buying.bought}
    return Plan(
        tuple(map(tuple, chosen)), tuple(reasons), bought, min(calls, len(bought) * each.most)
    )


def unlimited(games: Sequence[Coalitions], rules: Sequence[Sequence[CreditRule]]) -> set[Content]:
    """The evidence sets that the rules need without a budget."""
    return {
        key
        for game, each in zip(games, rules, strict=True)
        for key in _contents(
            game, (EMPTY, game.full, *(c for rule in each for c in rule.needs(game.players)))
        )
    }


class Allocation:
    """Spends the calls of a plan: one reply each, then where they narrow the intervals most."""

    def __init__(self, importance: Sequence[float], calls: int, most: int) -> None:
        """
        Args:
            importance: the sum over all credits of the squared coefficient of each evidence set.
            calls: replies in all, at least one for each evidence set.
            most: replies to one evidence set, at most.
        """
        self._importance = importance
        self._left = calls
        self._most = most
        self._sizes = [0] * len(importance)

    @property
    def looks(self) -> int:
        return self._most

    def next(self, measured: Sequence[Measurement | None]) -> Mapping[int, int]:
        if not self._left or not self._sizes:
            return {}
        if not any(self._sizes):
            wanted = dict.fromkeys(range(len(self._sizes)), 1)
        else:
            wanted = self._greedy(measured, max(1, int(self._left * AT_ONCE)))
        self._left -= sum(size - self._sizes[place] for place, size in wanted.items())
        for place, size in wanted.items():
            self._sizes[place] = size
        return wanted

    def _greedy(self, measured: Sequence[Measurement | None], calls: int) -> dict[int, int]:
        sizes = list(self._sizes)
        means = [None if each is None else each.value for each in measured]

        def worth(place: int) -> float:
            mean, size = means[place], sizes[place]
            if mean is None or size >= self._most:
                return 0.0
            narrower = self._width(mean, size) ** 2 - self._width(mean, size + 1) ** 2
            return self._importance[place] * narrower

        heap = [(-worth(place), place) for place in range(len(sizes))]
        heapify(heap)
        wanted: dict[int, int] = {}
        for _ in range(calls):
            negative, place = heap[0]
            if not negative:
                break
            sizes[place] += 1
            wanted[place] = sizes[place]
            heapreplace(heap, (-worth(place), place))
        return wanted

    def _width(self, mean: float, size: int) -> float:
        low, high = clopper_pearson(min(1.0, max(0.0, mean)), size, level_each(self._most))
        return high - low


def importance(
    games: Sequence[Coalitions], rules: Sequence[Sequence[CreditRule]], evidences: Iterable[Content]
) -> list[float]:
    """For each evidence set the sum of its squared coefficients, over the credits of all rules and
    the total."""
    found = dict.fromkeys(evidences, 0.0)
    for game, chosen in zip(games, rules, strict=True):
        total = {0: gain(game.full, EMPTY)}
        for rule in (None, *chosen):
            linear = rule.linear(game.players) if isinstance(rule, Shapley) else rule
            shares = linear.terms(game.players) if isinstance(linear, LinearRule) else total
            for share in shares.values():
                weights: dict[Content, float] = {}
                for coalition, coefficient in share.items():
                    for key in _contents(game, [coalition]):
                        weights[key] = weights.get(key, 0.0) + float(coefficient)
                for key, weight in weights.items():
                    if key in found:
                        found[key] += weight**2
    return list(found.values())


def _rank(rule: CreditRule) -> int:
    order = (leave_one_out.NAME, trajectory.NAME)
    if isinstance(rule, Shapley):
        return len(order) + 1
    return order.index(rule.name) if rule.name in order else len(order)


def _affordable_forms(rule: CreditRule, game: Coalitions) -> Iterator[CreditRule]:
    """The rule itself, and for Shapley samples of fewer and fewer orders."""
    yield rule
    count = len(game.players)
    if not isinstance(rule, Shapley):
        return
    for groups in range(MOST_GROUPS, FEWEST_GROUPS - 1, -1):
        if count > 2:
            yield rule._replace(permutations=groups * count, sampling="rotations", exact_players=0)


def _contents(game: Coalitions, coalitions: Iterable[Coalition]) -> list[Content]:
    """The evidence of the coalitions that can be measured."""
    keys = (game.key(coalition) for coalition in coalitions)
    return [key for key in keys if not isinstance(key, MissingEvidence)]
