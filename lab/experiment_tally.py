"""Running figures of an experiment, one arm at a time, from the first item on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hopscope.lab.workers import Done
from hopscope.runtime.types import Credit, Measurement, Question, Usage
from hopscope.store.experiment_records import Claimed, Item
from hopscope.tracing.answer_metrics import exact_match
from hopscope.tracing.answer_metrics._metric import AnswerMetric, Case


@dataclass
class Mean:
    """A mean that grows."""

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
    """What is known of an arm."""

    items: int = 0
    ok: int = 0
    failed: int = 0
    right: Mean = field(default_factory=Mean)
    """Exact match of the answers."""
    gain: Mean = field(default_factory=Mean)
    """ΔSePer of whole runs."""
    usage: Usage = field(default_factory=Usage)
    """Of the runs and of measuring them."""
    queries: int = 0
    seconds: float = 0.0

    @property
    def done(self) -> int:
        return self.ok + self.failed


class Tally:
    """Figures by arm; begun with what the store has, then told of each item that is done."""

    def __init__(
        self,
        items: Iterable[Item],
        gains: Mapping[str, Iterable[Credit]],
        spent: Mapping[str, Usage],
    ) -> None:
        """`gains` and `spent` are credits and the cost of measuring, by the run's id."""
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

    def add(self, claimed: Claimed, done: Done) -> Usage:
        """Count an item; what it cost."""
        row = self.rows[claimed.arm.label]
        self._count(row, failed=done.error is not None)
        spent = sum((appraisal.usage for appraisal in done.appraisals), Usage())
        if done.run is not None:
            if done.error is None:
                self._judge(row, claimed.entry.question, done.run.answer, done.credits)
            spent += done.run.usage
            row.queries += sum(step.query is not None for step in done.run.steps)
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
        row.gain.add(total(credits, "seper"))


def total(credits: Iterable[Credit], meter: str) -> Measurement | None:
    """What a meter gave the whole run; of several appraisals the last."""
    found = [c for c in credits if c.meter == meter and c.rule == "total" and c.step is None]
    return found[-1].measurement if found else None


def _pooled(means: Iterable[Mean]) -> Mean:
    found = list(means)
    return Mean(sum(mean.total for mean in found), sum(mean.n for mean in found))
