"""What was measured of a run: numbers, and the shares of its utility."""

import json
from datetime import datetime
from typing import Self

from pydantic import Field, JsonValue, model_validator

from hopscope.runtime.types.record import Record, Text, digest
from hopscope.runtime.types.usage import PairCounts, Usage


class Measurement(Record):
    """A number with its provenance, or the reason it is missing."""

    value: float | None
    reason: Text | None = None
    """Why `value` is None."""
    n: int = 0
    """Samples behind the value; 0 when it is exact."""
    seed: int | None = None
    estimator: str = ""
    """The formula and its options, enough to compute the value again."""
    low: float | None = None
    """95 % interval."""
    high: float | None = None
    certain: bool = False
    """The interval always holds, not only in 95 % of cases (enumerated scores)."""
    dropped: tuple[str, ...] | None = None
    """Keys of the passages that the meter left out because the context was too long; the first may
    be left out in part. None where the reader saw all."""

    @model_validator(mode="after")
    def _value_or_reason(self) -> Self:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a measurement has either a value or the reason it is missing")
        return self


class Provenance(Record):
    """The settings that a credit depends on, besides the run."""

    reader: Text
    """Name and revision of the reader."""
    entailment: Text | None = None
    seed: int = 0
    settings: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def settings_hash(self) -> str:
        ordered = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return digest(ordered)[:16]


class Credit(Record):
    """A share of the utility, given to one step, to one passage of a step, or to the whole run
    when `step` is None."""

    run_id: str
    step: int | None
    passage: Text | None = Field(default=None, min_length=1)
    """Key of the passage that gets the share; None when the whole step gets it."""
    rule: str
    """The rule of sharing: trajectory, leave_one_out, solo, shapley; or level and total, the
    amounts that are shared."""
    meter: str
    measurement: Measurement
    provenance: Provenance


class Appraisal(Record):
    """One measurement of a run: its time and its cost. Its credits are those of the run with the
    same provenance."""

    run_id: str
    provenance: Provenance
    measured: datetime
    usage: Usage = Usage()
    """The reader's usage, in `replay` with that of the repeated runs. Results held in memory cost
    nothing again."""
    seconds: float = 0.0
    pairs: PairCounts | None = None
    """The pairs sent to the entailment model; None where they were not counted."""
