"""The interface of credit rules, and the rules that are linear in the values."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple, Protocol

from hopscope.runtime.types import Measurement
from hopscope.tracing.games.coalitions import Coalition, Coalitions, Terms

ShareTerms = dict[int, Terms]
"""Each player's share as a combination of coalition values."""


class CreditRule(Protocol):
    """Shares the utility of a game among its players: a run's among its steps, or a step's among
    its passages."""

    @property
    def name(self) -> str: ...

    def needs(self, players: Sequence[int]) -> Iterable[Coalition]:
        """The coalitions whose values the rule will use; those of all rules are measured in one
        call."""
        ...

    def share(self, coalitions: Coalitions) -> list[Measurement]:
        """The credit of each member of the game, in order; exactly 0 for members that are not
        players."""
        ...


class LinearRule(NamedTuple):
    """A rule whose credits are linear combinations of coalition values."""

    name: str
    terms: Callable[[Sequence[int]], ShareTerms]
    """The shares of the players, given in order."""

    def needs(self, players: Sequence[int]) -> Iterable[Coalition]:
        shares = self.terms(players).values()
        return dict.fromkeys(coalition for terms in shares for coalition in terms)

    def share(self, coalitions: Coalitions) -> list[Measurement]:
        shares = self.terms(coalitions.players)
        coalitions.measure(self.needs(coalitions.players))
        return [
            coalitions.combine(shares.get(member, {}), self.name, member)
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
