"""What sets of steps are worth: the game whose shares the credit rules hand out.

Players are the steps that brought at least one passage into the evidence that a model was shown,
in that step or later; every other step earns exactly 0. A coalition S of players is worth what
the meter says of its passages: the deduplicated union of what its steps brought, in the order of
the trajectory, whichever steps are left out. The queries of later steps stay as they were.

A workflow that drops or replaces evidence is measured by the same rule: a dropped passage still
counts as brought by its step, so the last coalition may hold more than the run's last evidence.

Invariants: equal evidence is measured once and has one value, so that identities hold exactly:
trajectory credits sum to the total, Shapley shares too. Coefficients are fractions, so that terms
that cancel do so without a remainder.

Source: Shapley (1953); the game is ours.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from hopscope.runtime.ports import UtilityMeter
from hopscope.runtime.types import Measurement, Passage, Run
from hopscope.tracing.intervals import Estimate, combination

Coalition = frozenset[int]
"""Indices of steps."""
Terms = Mapping[Coalition, Fraction]
"""A linear combination of coalition values."""
Content = tuple[str, ...]

EMPTY: Coalition = frozenset()


def contributions(run: Run) -> dict[int, tuple[Passage, ...]]:
    """What each player brought, by step index: passages new in the step and shown then or later."""
    brought: dict[int, tuple[Passage, ...]] = {}
    taken: set[str] = set()
    for position, step in enumerate(run.steps):
        shown = {key for later in run.steps[position:] for key in later.shown}
        by_key = {passage.key: passage for passage in step.evidence}
        fresh = [key for key in step.new if key in shown and key in by_key and key not in taken]
        taken.update(fresh)
        if fresh:
            brought[step.index] = tuple(by_key[key] for key in fresh)
    return brought


class Coalitions:
    """The values of a run's coalitions by one meter, measured when first needed."""

    def __init__(self, run: Run, meter: UtilityMeter) -> None:
        self.run = run
        self.meter = meter
        self._brought = contributions(run)
        self._values: dict[Content, Measurement] = {}

    @property
    def players(self) -> tuple[int, ...]:
        """Indices of the steps that can earn something, in order."""
        return tuple(self._brought)

    @property
    def full(self) -> Coalition:
        return frozenset(self._brought)

    def upto(self, step: int) -> Coalition:
        """The players among the steps 0 to `step`."""
        return frozenset(player for player in self._brought if player <= step)

    def evidence(self, coalition: Coalition) -> tuple[Passage, ...]:
        """The passages its steps brought, in the order of the trajectory."""
        return tuple(
            passage
            for player, passages in self._brought.items()
            if player in coalition
            for passage in passages
        )

    def measure(self, coalitions: Iterable[Coalition]) -> None:
        """Measure what is not known yet, all in one call to the meter."""
        wanted = {self._content(c): self.evidence(c) for c in coalitions}
        unknown = {key: e for key, e in wanted.items() if key not in self._values}
        if unknown:
            found = self.meter.measure(self.run.question, list(unknown.values()))
            self._values.update(zip(unknown, found, strict=True))

    def value(self, coalition: Coalition) -> Measurement:
        """v(S). Of the empty coalition: the closed-book value."""
        self.measure([coalition])
        return self._values[self._content(coalition)]

    def combine(self, terms: Terms, rule: str) -> Measurement:
        """Σ c·v(S) with an interval by MOVER, where the values have one.

        `n` is the number of samples behind each value; exact zeros have 0. Unmeasured when any
        value is, for the same reason; and always when the empty coalition's is.
        """
        self.measure([EMPTY, *terms])
        merged: dict[Content, Fraction] = {}
        for coalition, coefficient in terms.items():
            key = self._content(coalition)
            merged[key] = merged.get(key, Fraction(0)) + coefficient
        used = {key: c for key, c in merged.items() if c}
        baseline = self._values[()]
        values = [self._values[key] for key in used]
        estimator = f"{rule} of {(values[0] if values else baseline).estimator}"
        reason = next((v.reason for v in (baseline, *values) if v.value is None), None)
        if reason is None and len({v.estimator for v in values}) > 1:
            reason = "the values to compare come from different estimators"
        if reason is not None:
            return Measurement(value=None, reason=reason, seed=baseline.seed, estimator=estimator)
        estimates = [(float(c), _estimate(v)) for c, v in zip(used.values(), values, strict=True)]
        total = combination(estimates)
        bounded = all(v.low is not None and v.high is not None for v in (baseline, *values))
        return Measurement(
            value=total.value,
            n=min((v.n for v in values), default=0),
            seed=baseline.seed,
            estimator=estimator,
            low=total.low if bounded else None,
            high=total.high if bounded else None,
        )

    def _content(self, coalition: Coalition) -> Content:
        return tuple(passage.content_hash for passage in self.evidence(coalition))


def _estimate(v: Measurement) -> Estimate:
    """A measured value; without an interval it stands for itself."""
    assert v.value is not None
    low, high = (v.value if end is None else end for end in (v.low, v.high))
    return Estimate(v.value, low, high)
