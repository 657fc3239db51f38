"""The values of coalitions as records, and games that are played again from such records.

Every credit is a combination of coalition values. With the values stored, a rule needs no model:
its credits equal those of the measurement to the last digit.

At most `MOST` coalitions of a game are recorded. Those of all rules but `shapley` come first (none,
all, single players, all but one, the trajectory), then the sampled ones in the order of the draw.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hopscope.runtime.types import (
    CoalitionValue,
    GameValues,
    Measurement,
    Provenance,
)
from hopscope.tracing.games.coalitions import (
    Coalition,
    Coalitions,
    Content,
    Game,
    GameMember,
    KnownEvidence,
    MissingEvidence,
)

MOST = 2048
"""Coalitions of one game recorded by one meter: all those of 11 players."""

CUT = "the meter cut the evidence of a repeated run, whose passages are not stored"


def record(
    coalitions: Coalitions, run_id: str, provenance: Provenance, *, most: int = MOST
) -> GameValues:
    """The values that were measured, at most so many."""
    game = coalitions.game
    kept = sorted(coalitions.measured, key=lambda each: not _of_simple_rules(coalitions, each))
    return GameValues(
        run_id=run_id,
        provenance=provenance,
        meter=coalitions.values.meter.name,
        step=game.step,
        keys=tuple(key for m in game.members if (key := game.identify(m).passage) is not None),
        members=game.members,
        players=game.players,
        remark=game.remark,
        comparable=coalitions.values.comparable,
        measured=len(coalitions.measured),
        values=tuple(_value(coalitions, each) for each in kept[:most]),
    )


def once(games: Sequence[GameValues]) -> list[GameValues]:
    """The games of one measurement, with each evidence set's answers in one of them: variants of a
    meter share their replies, and games their evidence."""
    told: set[tuple[str | None, bool]] = set()
    found = []
    for game in games:
        own = {_answered(value) for value in game.values if value.answers is not None}
        values = (
            value.model_copy(update={"answers": None}) if _answered(value) in told else value
            for value in game.values
        )
        found.append(game.model_copy(update={"values": tuple(values)}))
        told |= own
    return found


def _answered(value: CoalitionValue) -> tuple[str | None, bool]:
    """The evidence, and whether its answers are tokens or groups."""
    return value.evidence, bool(value.answers and value.answers.tokens)


def known(games: Iterable[GameValues]) -> dict[Content, Measurement]:
    """The recorded values by the hash of their evidence; `games` share a meter and settings."""
    return {
        value.evidence: value.measurement
        for game in games
        for value in game.values
        if value.evidence is not None
    }


@dataclass(frozen=True)
class RecordedGame:
    """A game whose evidence is known by its hash only, such as that of repeated runs."""

    values: GameValues
    frozen: Game
    """The same players in the run's record."""
    unmeasured: str
    """Why a coalition without a recorded value is unmeasured."""

    @property
    def step(self) -> int | None:
        return self.values.step

    @property
    def members(self) -> tuple[int, ...]:
        return self.values.members

    @property
    def players(self) -> tuple[int, ...]:
        return self.values.players

    @property
    def remark(self) -> str:
        return self.values.remark

    def identify(self, member: int) -> GameMember:
        return self.frozen.identify(member)

    def brings(self, member: int) -> frozenset[str]:
        return self.frozen.brings(member)

    def evidence(self, coalition: Coalition) -> KnownEvidence | MissingEvidence:
        value = self._by_members.get(coalition)
        if value is None:
            return MissingEvidence(self.unmeasured)
        if value.evidence is None:
            return MissingEvidence(value.measurement.reason or self.unmeasured)
        if value.unseen and self.values.provenance.settings.get("mode") == "replay":
            return MissingEvidence(CUT)
        keys = frozenset(key for member in coalition for key in self.brings(member))
        return KnownEvidence(value.evidence, keys, frozenset(value.unseen))

    @cached_property
    def _by_members(self) -> Mapping[Coalition, CoalitionValue]:
        return {frozenset(value.members): value for value in self.values.values}


def _of_simple_rules(coalitions: Coalitions, coalition: Coalition) -> bool:
    players, size = coalitions.players, len(coalition)
    first = coalition == frozenset(players[:size])
    return first or size <= 1 or size >= len(players) - 1


def _value(coalitions: Coalitions, coalition: Coalition) -> CoalitionValue:
    key = coalitions.key(coalition)
    return CoalitionValue(
        members=tuple(sorted(coalition)),
        evidence=None if isinstance(key, MissingEvidence) else key,
        unseen=tuple(sorted(coalitions.values.unseen(coalitions.game.evidence(coalition)))),
        measurement=coalitions.value(coalition),
        answers=None if isinstance(key, MissingEvidence) else coalitions.values.answers.get(key),
    )
