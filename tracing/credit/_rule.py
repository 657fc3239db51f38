"""What a credit rule is, and the form that rules take which are linear in the values."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple, Protocol

from hopscope.runtime.types import Measurement
from hopscope.tracing.coalitions import Coalition, Coalitions, Terms

Share = dict[int, Terms]
"""For each player, the combination of coalition values it is credited with."""


class CreditRule(Protocol):
    """Shares the utility of a game among its players: a run's among its steps, or a step's among
    its passages."""

    @property
    def name(self) -> str: ...

    def needs(self, players: Sequence[int]) -> Iterable[Coalition]:
        """The coalitions whose values the rule will use, so that all rules' can be measured in
        one call."""
        ...

    def share(self, coalitions: Coalitions) -> list[Measurement]:
        """The credit of each member of the game, in order; exactly 0 for those that are no
        players."""
        ...


class Linear(NamedTuple):
    """A rule whose credits are linear combinations of coalition values."""

    name: str
    terms: Callable[[Sequence[int]], Share]
    """From the players, in order."""

    def needs(self, players: Sequence[int]) -> Iterable[Coalition]:
        shares = self.terms(players).values()
        return dict.fromkeys(coalition for terms in shares for coalition in terms)

    def share(self, coalitions: Coalitions) -> list[Measurement]:
        shares = self.terms(coalitions.players)
        coalitions.measure(self.needs(coalitions.players))
        return [
            coalitions.combine(shares.get(member, {}), self.name)
            for member in coalitions.game.members
        ]


def gain(after: Coalition, before: Coalition, weight: Fraction = Fraction(1)) -> Terms:
    """v(after) - v(before), weighted."""
    total: dict[Coalition, Fraction] = {}
    add(total, {after: weight})
    add(total, {before: -weight})
    return total


def add(total: dict[Coalition, Fraction], terms: Terms) -> None:
    """Add terms to a running sum."""
    for coalition, coefficient in terms.items():
        total[coalition] = total.get(coalition, Fraction(0)) + coefficient
