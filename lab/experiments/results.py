"""The finished items of one or more experiments, as input of tables.

Invariants: a value that was not measured is a reason; a failed item has no values; equal questions
of several experiments are one question, so that runs on one question are never taken for
independent.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from math import nan
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopscope.runtime.budget.prices import Price
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Question, Run, Usage
from hopscope.store.experiments.records import Experiment
from hopscope.store.experiments.result_rows import QuestionRow, ResultRow, Retrieval, Value
from hopscope.tracing.reports.displays import display, leading, metric_heading, shown
from hopscope.tracing.scoring.metric import AnswerMetric, Case
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, Floats

if TYPE_CHECKING:
    from hopscope.tracing.erag.labels import ERAG

Places = NDArray[np.int64]

By = Literal["workflow", "experiment", "reader", "retriever", "seed", "hops", "kind"]
"""The property that separates rows of tables besides the arm: a setting of the experiments, or a
property of the questions."""
OF_QUESTIONS: tuple[By, ...] = ("hops", "kind")

FAILED = "the run failed"
UNCOUNTED = "the reader's server does not tell how many tokens"
UNTIMED = "the imported record tells no times"
BATCH = 250
"""Answers that are judged at once."""


class Size(NamedTuple):
    """What a system did."""

    questions: int
    failed: int
    """Items that failed."""


class Measure(NamedTuple):
    """A number computed from single items."""

    name: str
    heading: str
    done: Callable[[ResultRow], Value]
    """The value of an item that did not fail."""
    digits: int = 2

    def of(self, row: ResultRow) -> Value:
        return FAILED if row.error else self.done(row)

    def all(self, rows: Sequence[ResultRow]) -> list[Value]:
        """`of` each."""
        return [FAILED if each.error else self.done(each) for each in rows]


def _usage(row: ResultRow) -> Usage:
    # Validated when stored; there may be tens of thousands.
    return Usage.model_construct(
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        calls=row.calls,
        thinking_tokens=row.thinking_tokens,
        cached_tokens=row.cached_tokens,
        uncounted=row.uncounted,
    )


def _tokens(row: ResultRow) -> Value:
    return UNCOUNTED if row.uncounted else row.tokens


ALWAYS = ("seper", "grogu")
"""Meters that have columns in tables even if not measured: scripts expect them."""


def utilities_of(meter: str) -> Iterator[Measure]:
    """A meter's value with all evidence and its change; only one of them for a meter of gains."""
    told = display(meter)
    if told.baseline:
        yield Measure(meter, told.heading, lambda row: row.utility(meter).level, told.digits)
    name, heading = (f"{meter}_delta", told.delta) if told.baseline else (meter, told.heading)
    yield Measure(name, heading, lambda row: row.utility(meter).delta, told.digits)


COSTS = (
    Measure("retrievals", "retrievals", attrgetter("retrievals")),
    Measure("calls", "calls", attrgetter("calls"), 1),
    Measure("tokens", "tokens", _tokens, 0),
    Measure("seconds", "seconds", lambda row: UNTIMED if row.seconds is None else row.seconds),
)


@dataclass(frozen=True)
class Results:
    """The input of tables. Runs are loaded when a table first needs them."""

    rows: Sequence[ResultRow]
    experiments: Mapping[str, Experiment]
    """By name: those that the rows belong to."""
    _: KW_ONLY
    metrics: Mapping[str, AnswerMetric]
    """Metrics of answers, by the name that the user gave."""
    verdict: str
    """The name of the metric that decides whether an answer is right."""
    threshold: float = 0.8
    """An answer is right from this value on."""
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    by: By = "workflow"
    load_retrievals: Callable[[], Sequence[Retrieval]] = tuple
    """Loads the retrievals of all runs."""
    load_runs: Callable[[Iterable[str]], Sequence[Run]] = lambda _: ()
    """Loads the runs of these ids."""
    prices: Callable[[str], Price] = lambda _: Price()
    """The price of a reader, by name."""
    appraisals: tuple[str, ...] = ()
    """Descriptions of the appraisals that measured the utilities, for the notes of tables."""
    erag: "ERAG | None" = None
    """Labels passages; None without a reader for it."""

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """Labels of the systems, in the order of the experiments' arms."""
        present = {self._system(row): None for row in self.rows}
        planned = [
            self._label(experiment, arm.label)
            for experiment in self.experiments.values()
            for arm in experiment.arms
        ]
        return tuple(dict.fromkeys([*(s for s in planned if s in present), *present]))

    @cached_property
    def by_system(self) -> dict[str, list[ResultRow]]:
        found: dict[str, list[ResultRow]] = {system: [] for system in self.systems}
        for row in self.rows:
            found[self._system(row)].append(row)
        return found

    @cached_property
    def sizes(self) -> dict[str, Size]:
        return {
            system: Size(len({r.question for r in rows}), sum(r.error is not None for r in rows))
            for system, rows in self.by_system.items()
        }

    @cached_property
    def questions(self) -> dict[QuestionRow, int]:
        """Indices of the questions in the arrays of columns."""
        distinct = dict.fromkeys(row.question for row in self.rows)
        return {asked: place for place, asked in enumerate(distinct)}

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """All measures: of answers, utility and cost."""
        judged = [Measure(name, metric_heading(name), self._scores(name)) for name in self.metrics]
        return (
            *judged,
            *self.utilities,
            *COSTS,
            Measure("cost", self._currency, self._cost, 4),
        )

    @cached_property
    def meters(self) -> tuple[str, ...]:
        """Meters that tables show, in order."""
        measured = dict.fromkeys(meter for row in self.rows for meter in row.utilities)
        return tuple(dict.fromkeys([*ALWAYS, *shown(measured)]))

    @cached_property
    def leading(self) -> str:
        """The meter of tables that show only one."""
        return leading(meter for row in self.rows for meter in row.utilities) or ALWAYS[0]

    @cached_property
    def utilities(self) -> tuple[Measure, ...]:
        """Measures of the value of all evidence."""
        return tuple(measure for meter in self.meters for measure in utilities_of(meter))

    def measure(self, name: str) -> Measure:
        """
        Raises:
            UsageError: there is none of that name.
        """
        found = next((measure for measure in self.measures if measure.name == name), None)
        if found is None:
            names = ", ".join(measure.name for measure in self.measures)
            raise UsageError(f"no measure {name!r}: choose from {names}")
        return found

    @cached_property
    def columns(self) -> dict[tuple[str, str], Column]:
        """The mean of each measure over each system's items, by system and measure."""
        found = {}
        for system, rows in self.by_system.items():
            places, ones = self._places([row.question for row in rows]), np.ones(len(rows))
            for measure in self.measures:
                found[system, measure.name] = self._column(
                    places,
                    measure.all(rows),
                    ones,
                    binary=measure.name in self.metrics and self.metrics[measure.name].binary,
                )
        return found

    def mean(
        self, asked: Sequence[QuestionRow], values: Sequence[Value], *, binary: bool = False
    ) -> Column:
        """The mean of any values of questions."""
        return self.ratio(asked, values, np.ones(len(values)), binary=binary)

    def ratio(
        self,
        asked: Sequence[QuestionRow],
        values: Sequence[Value],
        weights: Sequence[float] | Floats,
        *,
        binary: bool = False,
    ) -> Column:
        """The sum of any values of questions by that of the weights of those measured."""
        given = np.asarray(weights, float)
        return self._column(self._places(asked), values, given, binary=binary)

    def _places(self, asked: Sequence[QuestionRow]) -> Places:
        return np.array([self.questions[question] for question in asked], int)

    def _column(
        self, places: Places, values: Sequence[Value], weights: Floats, *, binary: bool
    ) -> Column:
        numbers = np.array([nan if isinstance(v, str) else v for v in values], float)
        measured = np.isfinite(numbers)
        reasons = Counter[str]()
        if not measured.all():
            reasons.update(value for value in values if isinstance(value, str))

        def sums(of: Floats) -> Floats:
            found = np.bincount(places[measured], of[measured], len(self.questions))
            return found.astype(float)

        return Column(
            sums(numbers),
            sums(weights),
            sums(np.ones(len(values))),
            np.bincount(places, minlength=len(self.questions)).astype(float),
            binary=binary,
            reason=next((why for why, _ in reasons.most_common(1)), "nothing was asked"),
        )

    def right(self, row: ResultRow) -> bool | None:
        """Whether an item's answer is right; None if that is unknown."""
        value = self.measure(self.verdict).of(row)
        return None if isinstance(value, str) else value >= self.threshold

    @cached_property
    def retrievals(self) -> dict[str, list[Retrieval]]:
        """Retrievals by run, in order; runs without any are left out."""
        found: dict[str, list[Retrieval]] = {}
        for retrieval in self.load_retrievals():
            found.setdefault(retrieval.run_id, []).append(retrieval)
        return found

    @cached_property
    def runs(self) -> dict[str, list[Run]]:
        """Whole runs by system. Their `workflow` is the system's label."""
        found: dict[str, list[Run]] = {}
        for system, rows in self.by_system.items():
            ids = [row.run_id for row in rows if row.run_id is not None]
            update = {"workflow": system}
            found[system] = [run.model_copy(update=update) for run in self.load_runs(ids)]
        return found

    def strata(self) -> list[tuple[str, "Results"]]:
        """The results by a property of questions; undivided if `by` is a setting of experiments."""
        if self.by not in OF_QUESTIONS:
            return [("", self)]
        parts: dict[int | str | None, list[ResultRow]] = {}
        for row in self.rows:
            parts.setdefault(getattr(row.question, self.by), []).append(row)
        named = [
            ("unknown" if value in ("", None) else str(value), rows)
            for value, rows in parts.items()
        ]
        return [(name, replace(self, rows=rows)) for name, rows in sorted(named)]

    @cached_property
    def _currency(self) -> str:
        found = {self.prices(each.reader).currency for each in self.experiments.values()}
        return " or ".join(sorted(found)) or "cost"

    def _cost(self, row: ResultRow) -> Value:
        reader = self.experiments[row.experiment].reader
        price = self._price[reader]
        if price.model is None:
            return f"no price is known of {reader}"
        cost = price.of(_usage(row), queries=row.retrievals)
        return UNCOUNTED if cost is None else cost

    @cached_property
    def _price(self) -> dict[str, Price]:
        return {each.reader: self.prices(each.reader) for each in self.experiments.values()}

    @cached_property
    def _judged(self) -> dict[str, dict[tuple[QuestionRow, str | None], Value]]:
        """Scores by metric, question and answer; equal answers are scored once."""
        pairs = list(dict.fromkeys((f.question, f.answer) for f in self.rows if not f.error))
        asked = {
            # Validated when stored; there may be ten thousand.
            each: Question.model_construct(text=each.text, answers=each.answers, id=each.id)
            for each in self.questions
        }
        found: dict[str, dict[tuple[QuestionRow, str | None], Value]] = {
            n: {} for n in self.metrics
        }
        # In batches, so that the next metric finds the normalised texts in the cache.
        for start in range(0, len(pairs), BATCH):
            part = pairs[start : start + BATCH]
            cases = [Case(asked[question], answer) for question, answer in part]
            for name, metric in self.metrics.items():
                for pair, score in zip(part, metric.score(cases), strict=True):
                    found[name][pair] = score.reason or "" if score.value is None else score.value
        return found

    def _scores(self, name: str) -> Callable[[ResultRow], Value]:
        return lambda row: self._judged[name][row.question, row.answer]

    def _system(self, row: ResultRow) -> str:
        return self._label(self.experiments[row.experiment], row.arm)

    def _label(self, experiment: Experiment, arm: str) -> str:
        match self.by:
            case "experiment":
                return f"{experiment.name}: {arm}"
            case "reader" | "retriever":
                return f"{arm}, {getattr(experiment, self.by)}"
            case "seed":
                return f"{arm}, seed {experiment.seed}"
            case _:
                return arm
