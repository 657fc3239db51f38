"""Running means and totals of an experiment by arm, from the first item on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hopscope.lab.experiments.workers import ItemResult
from hopscope.runtime import code_files
from hopscope.runtime.types import Credit, Measurement, Question, Usage
from hopscope.store.experiments.appraisals import ORIGINAL
from hopscope.store.experiments.records import ClaimedItem, Item
from hopscope.store.store import Store
from hopscope.tracing.answer_metrics import exact_match
from hopscope.tracing.meters import DEFAULT_METERS
from hopscope.tracing.reports.displays import leading
from hopscope.tracing.scoring.metric import AnswerMetric, Case


@dataclass
class Mean:
    """A running mean."""

    total: float = 0.0
    n: int = 0

    @property
    def value(self) -> float | None:
        return self.total / self.n if self.n else None

    def add(self, measured: Measurement | None) -> None:
        if measured is not None and measured.value is not None:
            self.total += measured.value
            self.n += 1


@dataclass
class Row:
    """Counts and means of an arm."""

    items: int = 0
    ok: int = 0
    failed: int = 0
    right: Mean = field(default_factory=Mean)
    """Exact match of the answers."""
    gain: Mean = field(default_factory=Mean)
    """The meter's totals of whole runs."""
    usage: Usage = field(default_factory=Usage)
    """Of the runs and of measuring them."""
    queries: int = 0
    seconds: float = 0.0

    @property
    def done(self) -> int:
        return self.ok + self.failed


class Tally:
    """Rows by arm: begins with the stored items, then adds each finished item."""

    def __init__(
        self,
        items: Iterable[Item],
        gains: Mapping[str, Iterable[Credit]],
        spent: Mapping[str, Usage],
        *,
        meter: str = "seper",
    ) -> None:
        """`gains` and `spent` are credits and the cost of measuring, by the run's id. The totals of
        `meter` are averaged."""
        self.meter = meter
        self.rows: dict[str, Row] = {}
        self._metric: AnswerMetric = exact_match.build()
        for item in items:
            row = self.rows.setdefault(item.arm, Row())
            row.items += 1
            if item.status in ("pending", "running"):
                continue
            self._count(row, failed=item.status == "failed")
            if found := item.outcome:
                if item.status == "ok":
                    self._judge(row, item.question, found.answer, gains.get(found.run_id, ()))
                row.usage += found.usage + spent.get(found.run_id, Usage())
                row.queries += found.retrievals
                row.seconds += found.seconds

    @classmethod
    def of(cls, store: Store, name: str) -> "Tally":
        """The tally of a stored experiment, with the totals of its `leading` meter.

        Raises:
            UsageError: there is no such experiment.
        """
        experiments = store.experiments
        spent = {
            run_id: sum((appraisal.usage for appraisal in found), Usage())
            for run_id, found in experiments.appraisals(name).items()
        }
        measured = experiments.find(name).settings.get("meters")
        named = measured if isinstance(measured, list) else DEFAULT_METERS
        meter = leading(code_files.stem(str(each)) for each in named) or DEFAULT_METERS[0]
        gains = experiments.credits(
            name, meters=[meter], rules=["total"], passages=False, appraisal=ORIGINAL
        )
        return cls(experiments.items(name), gains, spent, meter=meter)

    def add(self, claimed: ClaimedItem, done: ItemResult) -> Usage:
        """Add an item; returns its cost."""
        row = self.rows[claimed.arm.label]
        self._count(row, failed=done.error is not None)
        spent = sum((appraisal.usage for appraisal in done.appraisals), Usage())
        if done.run is not None:
            if done.error is None:
                self._judge(row, claimed.entry.question, done.run.answer, done.credits)
            spent += done.run.usage
            row.queries += len(done.run.retrievals)
            row.seconds += done.run.seconds
        row.usage += spent
        return spent

    @property
    def all(self) -> Row:
        """The sum over arms."""
        rows = self.rows.values()
        return Row(
            items=sum(row.items for row in rows),
            ok=sum(row.ok for row in rows),
            failed=sum(row.failed for row in rows),
            right=_pooled(row.right for row in rows),
            gain=_pooled(row.gain for row in rows),
            usage=sum((row.usage for row in rows), Usage()),
            queries=sum(row.queries for row in rows),
            seconds=sum(row.seconds for row in rows),
        )

    def _count(self, row: Row, *, failed: bool) -> None:
        row.failed += failed
        row.ok += not failed

    def _judge(
        self, row: Row, question: Question, answer: str | None, credits: Iterable[Credit]
    ) -> None:
        [score] = self._metric.score([Case(question, answer)])
        row.right.add(score)
        row.gain.add(total(credits, self.meter))


def total(credits: Iterable[Credit], meter: str) -> Measurement | None:
    """A meter's total for the whole run, of the last of several appraisals."""
    found = [c for c in credits if c.meter == meter and c.rule == "total" and c.step is None]
    return found[-1].measurement if found else None


def _pooled(means: Iterable[Mean]) -> Mean:
    found = list(means)
    return Mean(sum(mean.total for mean in found), sum(mean.n for mean in found))
