"""The values of coalitions, which the credit rules share out.

A game (see `games`) names the players, steps of a run or passages of a step, and the evidence that
is left when only some take part. A coalition's value is the meter's value of that evidence.

Invariants: equal evidence is measured once and has one value, in all games over one
`EvidenceValues`, and sums of values are computed without rounding. So identities hold exactly:
trajectory credits sum to the total, Shapley shares too, a player that changes nothing gets 0. A
player that a meter did not show to the reader is not one that changes nothing: it is unmeasured.

Source: Shapley (1953).
"""

from collections.abc import Iterable, Mapping, Set
from fractions import Fraction
from typing import NamedTuple, Protocol

from hopscope.runtime.ports import (
    AnsweringMeter,
    CuttingMeter,
    ForetellingMeter,
    SampleAllocation,
    SamplingMeter,
    UtilityMeter,
)
from hopscope.runtime.types import (
    GenerationRequest,
    MeasuredAnswers,
    Measurement,
    Passage,
    Question,
    digest,
)
from hopscope.tracing.asking import cut_off
from hopscope.tracing.statistics.intervals import ValueInterval, combination

Coalition = frozenset[int]
"""Numbers of players."""
Terms = Mapping[Coalition, Fraction]
"""A linear combination of coalition values."""
Content = str
"""A hash of evidence."""

EMPTY: Coalition = frozenset()

MIXED = " (mixes the key rules with and without documents)"
"""Flags a difference to GroGU's confidence without documents, which follows another rule (appendix
C.1), where that confidence does not cancel."""


class MissingEvidence(NamedTuple):
    """Why a coalition has no evidence."""

    reason: str


class KnownEvidence(NamedTuple):
    """Evidence of an earlier measurement, whose passages are not stored."""

    content: Content
    keys: frozenset[str]
    """Keys of its passages that members of the game bring."""
    unseen: frozenset[str]
    """Those of which the meter showed the reader nothing."""


Evidence = tuple[Passage, ...] | MissingEvidence | KnownEvidence


class GameMember(NamedTuple):
    """The step or passage that a member of a game stands for."""

    step: int | None
    """None in a game among all passages of a run."""
    passage: str | None
    """The passage's key; None when the member is the step."""


class Game(Protocol):
    """The members that can earn credit, and the evidence when only some take part."""

    @property
    def step(self) -> int | None:
        """The step whose passages play; None when steps do."""
        ...

    @property
    def members(self) -> tuple[int, ...]:
        """All that receive a credit, in the order of the trajectory."""
        ...

    @property
    def players(self) -> tuple[int, ...]:
        """The members that can change the evidence; the others earn exactly 0."""
        ...

    @property
    def remark(self) -> str:
        """The stand-ins for absent players, as the estimator names them; empty without any."""
        ...

    def identify(self, member: int) -> GameMember: ...

    def brings(self, member: int) -> frozenset[str]:
        """Keys of the passages that this member brings."""
        ...

    def evidence(self, coalition: Coalition) -> Evidence:
        """The evidence when these players take part and the others do not."""
        ...


class EvidenceValues:
    """One meter's values of evidence; each evidence set is measured once."""

    def __init__(
        self,
        question: Question,
        meter: UtilityMeter,
        known: Mapping[Content, Measurement] | None = None,
    ) -> None:
        """
        Args:
            known: values that were measured before, which the meter is not asked for again.
        """
        self.meter = meter
        self._question = question
        self._known: dict[Content, Measurement] = dict(known or {})
        self.answers: dict[Content, MeasuredAnswers] = {}
        """The answers behind the values that were measured here."""

    @property
    def comparable(self) -> bool:
        """Whether the value without evidence follows the same rule as with it."""
        return bool(getattr(self.meter, "comparable_baseline", True))

    @property
    def known(self) -> Set[Content]:
        """The evidence sets with a value."""
        return self._known.keys()

    def requests(self, evidences: Iterable[Evidence]) -> list[GenerationRequest]:
        """The replies that the meter will ask for to measure them, as far as it tells."""
        unknown = self._unknown(evidences)
        if not unknown or not isinstance(self.meter, ForetellingMeter):
            return []
        return self.meter.requests(self._question, list(unknown.values()))

    def measure(
        self, evidences: Iterable[Evidence], allocation: SampleAllocation | None = None
    ) -> None:
        """Measure the new evidence sets in one call to the meter.

        Args:
            allocation: how many replies each gets, for a meter that samples.
        """
        unknown = self._unknown(evidences)
        if unknown:
            new = list(unknown.values())
            sampling = allocation if isinstance(self.meter, SamplingMeter) else None
            if isinstance(self.meter, AnsweringMeter):
                answered = self.meter.measure_answered(self._question, new, sampling)
                measurements = [each.measurement for each in answered]
                for key, each in zip(unknown, answered, strict=True):
                    if each.answers is not None:
                        self.answers[key] = each.answers
            elif sampling is not None and isinstance(self.meter, SamplingMeter):
                measurements = self.meter.measure_by(self._question, new, sampling)
            else:
                measurements = self.meter.measure(self._question, new)
            self._known.update(zip(unknown, measurements, strict=True))

    def _unknown(self, evidences: Iterable[Evidence]) -> dict[Content, tuple[Passage, ...]]:
        """The evidence sets that have to be measured."""
        wanted = {
            content(e): e for e in evidences if not isinstance(e, MissingEvidence | KnownEvidence)
        }
        return {key: e for key, e in wanted.items() if key not in self._known}

    def leave(self, evidences: Iterable[Evidence], reason: str) -> None:
        """Give the evidence sets that have no value this reason for it."""
        for evidence in evidences:
            if not isinstance(evidence, MissingEvidence):
                unmeasured = Measurement(value=None, reason=reason)
                self._known.setdefault(_content_of(evidence), unmeasured)

    def unseen(self, evidence: Evidence) -> frozenset[str]:
        """Keys of the passages of which the meter shows the reader nothing."""
        if isinstance(evidence, KnownEvidence):
            return evidence.unseen
        if isinstance(evidence, MissingEvidence) or not isinstance(self.meter, CuttingMeter):
            return frozenset()
        return frozenset(self.meter.unseen(evidence))

    def of(self, key: Content | MissingEvidence) -> Measurement:
        """The value of measured evidence."""
        if isinstance(key, MissingEvidence):
            return Measurement(value=None, reason=key.reason)
        return self._known[key]


def content(evidence: tuple[Passage, ...]) -> Content:
    """Hash of the evidence that the reader sees; equal contents are one evidence set."""
    return digest(*(passage.content_hash for passage in evidence))[:16]


NO_EVIDENCE: Content = content(())


class Coalitions:
    """The values of a game's coalitions by one meter, measured when first needed."""

    def __init__(self, game: Game, values: EvidenceValues) -> None:
        self.game = game
        self.values = values
        self._keys: dict[Coalition, Content | MissingEvidence] = {}
        self._measured: dict[Coalition, None] = {}
        self._seen: dict[Coalition, tuple[frozenset[str], frozenset[str]]] = {}

    @property
    def players(self) -> tuple[int, ...]:
        return self.game.players

    @property
    def full(self) -> Coalition:
        return frozenset(self.game.players)

    @property
    def measured(self) -> tuple[Coalition, ...]:
        """The coalitions measured so far, in the order in which they were first needed."""
        return tuple(self._measured)

    def upto(self, member: int) -> Coalition:
        """The players up to this member."""
        return frozenset(player for player in self.game.players if player <= member)

    def measure(self, coalitions: Iterable[Coalition]) -> None:
        """Measure the new coalitions in one call to the meter."""
        new = [coalition for coalition in coalitions if coalition not in self._measured]
        self.values.measure([self.game.evidence(coalition) for coalition in new])
        self._measured.update(dict.fromkeys(new))

    def value(self, coalition: Coalition) -> Measurement:
        """v(S)."""
        self.measure([coalition])
        return self.values.of(self.key(coalition))

    def combine(self, terms: Terms, rule: str, member: int | None = None) -> Measurement:
        """Σ c·v(S) with an interval by MOVER, where the values have one.

        `n` is the number of samples behind each value; exact zeros have 0. If any value is
        unmeasured, or that of the empty coalition, so is the result, for the same reason. So is the
        credit of a `member` if the meter shows the reader none of its passages in one of the
        coalitions that it belongs to.
        """
        self.measure([EMPTY, *terms])
        merged: dict[Content | MissingEvidence, Fraction] = {}
        for coalition, coefficient in terms.items():
            key = self.key(coalition)
            merged[key] = merged[key] + coefficient if key in merged else coefficient
        used = {key: c for key, c in merged.items() if c}
        baseline = self.value(EMPTY)
        values = [self.values.of(key) for key in used]
        estimators = [cut_off.untold(value.estimator) for value in (*values, baseline)]
        first = next(filter(None, estimators), "nothing")
        estimator = f"{rule} of {first}{self.game.remark}"
        if NO_EVIDENCE in used and not self.values.comparable:
            estimator += MIXED
        reason = next((v.reason for v in (baseline, *values) if v.value is None), None)
        if reason is None and member is not None and isinstance(self.values.meter, CuttingMeter):
            reason = self._hidden(member, terms)
        if reason is None and len(set(estimators[: len(values)])) > 1:
            reason = "the values to compare come from different estimators"
        if reason is not None:
            return Measurement(value=None, reason=reason, seed=baseline.seed, estimator=estimator)
        shares = [c * Fraction(v.value or 0) for c, v in zip(used.values(), values, strict=True)]
        total = float(sum(shares))
        estimates = [(float(c), _estimate(v)) for c, v in zip(used.values(), values, strict=True)]
        around = combination(estimates)
        bounded = all(v.low is not None and v.high is not None for v in (baseline, *values))
        return Measurement(
            value=total,
            n=min((v.n for v in values), default=0),
            seed=baseline.seed,
            estimator=estimator,
            low=total - (around.value - around.low) if bounded else None,
            high=total + (around.high - around.value) if bounded else None,
            certain=bounded and around.certain,
            dropped=tuple(dict.fromkeys(k for v in values for k in v.dropped or ())) or None,
        )

    def _hidden(self, member: int, terms: Terms) -> str | None:
        """Why the member is unmeasured, if the reader saw none of its passages."""
        for coalition, coefficient in terms.items():
            if not coefficient or member not in coalition:
                continue
            there, unseen = self._shown(coalition)
            brought = self.game.brings(member) & there
            if brought and brought <= unseen:
                return (
                    f"{self.values.meter.name} cuts the context before "
                    f"{', '.join(sorted(brought))}: the reader saw nothing of it"
                )
        return None

    def _shown(self, coalition: Coalition) -> tuple[frozenset[str], frozenset[str]]:
        """Keys of the coalition's passages, and of those that the reader did not see at all."""
        if coalition not in self._seen:
            evidence = self.game.evidence(coalition)
            if isinstance(evidence, MissingEvidence):
                keys: frozenset[str] = frozenset()
            elif isinstance(evidence, KnownEvidence):
                keys = evidence.keys
            else:
                keys = frozenset(passage.key for passage in evidence)
            self._seen[coalition] = keys, self.values.unseen(evidence)
        return self._seen[coalition]

    def key(self, coalition: Coalition) -> Content | MissingEvidence:
        """The hash of the coalition's evidence."""
        if coalition not in self._keys:
            self._keys[coalition] = _identity(self.game.evidence(coalition))
        return self._keys[coalition]


def _identity(evidence: Evidence) -> Content | MissingEvidence:
    return evidence if isinstance(evidence, MissingEvidence) else _content_of(evidence)


def _content_of(evidence: tuple[Passage, ...] | KnownEvidence) -> Content:
    return evidence.content if isinstance(evidence, KnownEvidence) else content(evidence)


def _estimate(measurement: Measurement) -> ValueInterval:
    value = measurement.value or 0.0
    low = value if measurement.low is None else measurement.low
    high = value if measurement.high is None else measurement.high
    return ValueInterval(value, low, high, measurement.certain)
