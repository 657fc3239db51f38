"""Credits of a run as rows."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from hopscope.runtime.types import Appraisal, Credit, Record, Run
from hopscope.tracing.proxies import is_proxy

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console


class CreditRow(Record):
    """The worth that one rule gives to one step, to a passage of it, or to the whole run."""

    run: str
    """The run's id."""
    step: int | None
    """The step's index; None for the whole run, and for a level before any step."""
    name: str | None
    """The step's name in the workflow."""
    passage: str | None
    """The passage's key; None for the whole step."""
    title: str | None
    """The passage's title."""
    meter: str
    """The meter: `seper`, `grogu`, ..."""
    rule: str
    """The rule: `trajectory`, `leave_one_out`, `shapley`, ...; `level` is the utility
    after the step and `total` that of the whole run."""
    value: float | None
    """None if it was not measured."""
    low: float | None
    """95 % interval of `value`; None where it has none."""
    high: float | None
    n: int
    """Samples behind the value; 0 when it is exact."""
    reason: str | None
    """Why `value` is None."""
    appraisal: str
    """Hash of the measurement's settings."""
    reader: str
    """The reader that measured."""
    proxy: bool | None
    """Whether another reader ran; None if the reader that ran is unknown."""


class Credits(Sequence[CreditRow]):
    """The credits of one measurement of a run, one row for each step or passage, meter and rule.

    Threads may share it.
    """

    def __init__(
        self, run: Run, credits: Iterable[Credit], appraisal: Appraisal | None = None
    ) -> None:
        self._run = run
        self.records: tuple[Credit, ...] = tuple(credits)
        """The stored records, with full provenance."""
        self.appraisal = appraisal
        """The time and cost of the measurement; None if nothing was measured."""
        names = {step.index: step.name for step in run.steps}
        titles = {passage.key: passage.title for step in run.steps for passage in step.evidence}
        self._rows = tuple(_row(run, credit, names, titles) for credit in self.records)

    @overload
    def __getitem__(self, index: int) -> CreditRow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[CreditRow, ...]: ...
    def __getitem__(self, index: int | slice) -> CreditRow | tuple[CreditRow, ...]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<Credits of run {self._run.id[:12]}: {len(self)} rows>"

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries of plain values."""
        return [row.model_dump() for row in self._rows]

    def to_frame(self) -> "pd.DataFrame":
        """The rows as a data frame of pandas; unmeasured values are missing.

        Raises:
            UsageError: pandas is not installed.
        """
        from hopscope.api.views.frames import frame

        return frame(self.to_dicts(), list(CreditRow.model_fields))

    def show(self) -> None:
        """Print a table for each meter, as `hopscope credit` does."""
        self._draw(None)

    def _repr_html_(self) -> str:
        from hopscope.api.views.html import html

        return html(self._draw)

    def _draw(self, console: "Console | None") -> None:
        from hopscope.api.views import credit_table, render
        from hopscope.tracing.reports.appraised import Appraised

        if not self.records:
            (console or render.out()).print("no credits: nothing was measured")
            return
        # Older databases do not have the time and cost of measurements.
        appraisal = self.appraisal or Appraisal(
            run_id=self._run.id,
            provenance=self.records[0].provenance,
            measured=self._run.started,
        )
        found = Appraised(list(self.records), appraisal)
        credit_table.show(self._run, found, json=False, console=console)


def _row(run: Run, credit: Credit, names: dict[int, str], titles: dict[str, str]) -> CreditRow:
    measured = credit.measurement
    return CreditRow(
        run=credit.run_id,
        step=credit.step,
        name=None if credit.step is None else names.get(credit.step),
        passage=credit.passage,
        title=None if credit.passage is None else titles.get(credit.passage),
        meter=credit.meter,
        rule=credit.rule,
        value=measured.value,
        low=measured.low,
        high=measured.high,
        n=measured.n,
        reason=measured.reason,
        appraisal=credit.provenance.settings_hash,
        reader=credit.provenance.reader,
        proxy=is_proxy(run.reader, credit.provenance.reader),
    )
