"""The finished items of one or more experiments as columns: the same means as those of `Results`,
of hundreds of thousands of items."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopscope.lab.experiments.results import (
    ALWAYS,
    BATCH,
    COSTS,
    FAILED,
    UNCOUNTED,
    UNTIMED,
    Places,
    Size,
    utilities_of,
)
from hopscope.runtime.budget.prices import Price
from hopscope.runtime.types import Question
from hopscope.store.experiments.records import Experiment
from hopscope.store.experiments.result_columns import Numbers, ResultColumns, RetrievalColumns
from hopscope.store.experiments.result_rows import NOT_APPRAISED, QuestionRow
from hopscope.tracing.reports.displays import display, leading, metric_heading, shown
from hopscope.tracing.scoring.metric import AnswerMetric, Case, StringMetric
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, Floats

Why = Callable[[int], str]
"""The reason why an item's number is missing."""


class Measured(NamedTuple):
    """A measure with its value of each item; NaN where it is missing."""

    name: str
    heading: str
    digits: int
    values: Floats
    why: Why
    binary: bool = False


@dataclass(frozen=True)
class ColumnarResults:
    """As `Results`, with rows separated by workflow, and by experiment if there are several."""

    parts: Sequence[ResultColumns]
    """The items of each experiment."""
    experiments: Mapping[str, Experiment]
    metrics: Mapping[str, AnswerMetric]
    prices: Callable[[str], Price]
    """The price of a reader, by name."""
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    appraisals: tuple[str, ...] = ()
    load_retrievals: Callable[[str], Sequence[RetrievalColumns]] = lambda _: ()
    """Loads the retrievals of each experiment's runs, with the shares of a meter."""

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """Labels of the systems that have items, in the order of the experiments' arms."""
        return tuple(self._systems)

    @cached_property
    def _systems(self) -> dict[str, Places]:
        """The items of each system."""
        found: dict[str, Places] = {}
        start = 0
        for part in self.parts:
            for arm, label in enumerate(part.labels):
                own = np.flatnonzero(part.arm == arm) + start
                if len(own):
                    several = len(self.parts) > 1
                    found[f"{part.experiment}: {label}" if several else label] = own
            start += len(part.arm)
        return found

    @cached_property
    def sizes(self) -> dict[str, Size]:
        return {
            system: Size(len(np.unique(self._asked[own])), int(self._failed[own].sum()))
            for system, own in self._systems.items()
        }

    @cached_property
    def measures(self) -> tuple[Measured, ...]:
        """All measures: of answers, utility and cost."""
        return (*self._judged(), *self._utilities(), *self._costs())

    @cached_property
    def meters(self) -> tuple[str, ...]:
        """Meters that tables show, in order."""
        return tuple(dict.fromkeys([*ALWAYS, *shown(self.measured_meters)]))

    @cached_property
    def measured_meters(self) -> tuple[str, ...]:
        """Meters that measured whole runs."""
        return tuple(dict.fromkeys(meter for part in self.parts for meter in part.deltas))

    @cached_property
    def leading(self) -> str:
        """The meter of tables that show only one."""
        return leading(self.measured_meters) or ALWAYS[0]

    @cached_property
    def columns(self) -> dict[tuple[str, str], Column]:
        """The mean of each measure over each system's items, by system and measure."""
        return {
            (system, each.name): self.mean(own, each.values[own], own, each.why, binary=each.binary)
            for system, own in self._systems.items()
            for each in self.measures
        }

    @cached_property
    def run(self) -> Places:
        """Row number of the run of each item; -1 without one."""
        return np.concatenate([part.run for part in self.parts])

    def labels(self, items: Places) -> list[str]:
        """The labels of these items' arms."""
        arms = [label for part in self.parts for label in part.labels]
        starts = np.cumsum([0, *(len(part.labels) for part in self.parts)])
        own = [part.arm + start for part, start in zip(self.parts, starts, strict=False)]
        return [arms[arm] for arm in np.concatenate(own)[items]]

    def hops(self, items: Places) -> list[int | None]:
        """The hops of these items' questions."""
        return [self.questions[place].hops for place in self._asked[items]]

    def of_system(self, system: str) -> Places:
        """The indices of its items."""
        return self._systems[system]

    def mean(
        self, items: Places, values: Floats, rows: Places, why: Why, *, binary: bool = False
    ) -> Column:
        """The mean over questions of numbers that belong to these items.

        Args:
            rows: what `why` is asked about each number that is missing.
        """
        places, count = self._asked[items], len(self.questions)
        known = np.isfinite(values)
        reasons = Counter(map(why, rows[~known].tolist()))
        measured = np.bincount(places[known], minlength=count).astype(float)
        return Column(
            np.bincount(places[known], values[known], count).astype(float),
            measured,
            measured,
            np.bincount(places, minlength=count).astype(float),
            binary=binary,
            reason=next((why for why, _ in reasons.most_common(1)), "nothing was asked"),
        )

    def retrievals(self, meter: str) -> RetrievalColumns:
        """The retrievals of all items' runs, with the shares of a meter."""
        found = self.load_retrievals(meter)
        starts = np.cumsum([0, *self._lengths])
        lengths = [len(each.item) for each in found]
        rules = dict.fromkeys(rule for each in found for rule in each.shares)
        return RetrievalColumns(
            item=np.concatenate(
                [each.item + start for each, start in zip(found, starts, strict=False)]
            ),
            ordinal=np.concatenate([each.ordinal for each in found]),
            tokens=np.concatenate([each.tokens for each in found]),
            uncounted=np.concatenate([each.uncounted for each in found]),
            shares={rule: joined([e.shares.get(rule) for e in found], lengths) for rule in rules},
        )

    def delta(self, meter: str) -> Floats:
        """The change of a meter by the evidence of each item; NaN where it was not measured."""
        return joined([part.deltas.get(meter) for part in self.parts], self._lengths).values

    @cached_property
    def questions(self) -> tuple[QuestionRow, ...]:
        """Equal questions of several experiments are one question."""
        return tuple(dict.fromkeys(asked for part in self.parts for asked in part.questions))

    @cached_property
    def _asked(self) -> Places:
        """The question of each item."""
        at = {question: place for place, question in enumerate(self.questions)}
        own = [np.array([at[q] for q in part.questions], np.int64) for part in self.parts]
        return np.concatenate(
            [places[part.question] for places, part in zip(own, self.parts, strict=True)]
        )

    @cached_property
    def _failed(self) -> NDArray[np.bool_]:
        return np.concatenate([part.failed for part in self.parts])

    def _made(
        self, name: str, heading: str, digits: int, values: Floats, why: Why, binary: bool = False
    ) -> Measured:
        """A measure; of failed items nothing counts."""
        failed = self._failed

        def reason(item: int) -> str:
            return FAILED if failed[item] else why(item)

        return Measured(name, heading, digits, np.where(failed, np.nan, values), reason, binary)

    def _judged(self) -> list[Measured]:
        """Equal answers to a question are scored once."""
        answers = [answer for part in self.parts for answer in part.answers]
        pairs = list(zip(self._asked.tolist(), answers, strict=True))
        done = zip(pairs, self._failed.tolist(), strict=True)
        distinct = {pair: None for pair, failed in done if not failed}
        at = {pair: place for place, pair in enumerate(distinct)}
        where = np.array([at.get(pair, len(at)) for pair in pairs], np.int64)
        asked = [(self.questions[question], answer) for question, answer in distinct]
        scores: dict[str, list[float | str]] = {name: [] for name in self.metrics}
        # In batches, so that the next metric finds the normalised texts in the cache.
        for start in range(0, len(asked), BATCH):
            for name, metric in self.metrics.items():
                scores[name] += _scores(metric, asked[start : start + BATCH])
        found = []
        for name, metric in self.metrics.items():
            of = scores[name]
            numbers = np.array([np.nan if isinstance(v, str) else v for v in of] + [np.nan], float)

            def why(item: int, of: list[float | str] = of) -> str:
                return str(of[where[item]])

            heading = metric_heading(name)
            found.append(self._made(name, heading, 2, numbers[where], why, metric.binary))
        return found

    def _utilities(self) -> list[Measured]:
        found = []
        for meter in self.meters:
            for measure in utilities_of(meter):
                level = display(meter).baseline and measure.name == meter
                of = [part.levels if level else part.deltas for part in self.parts]
                values, reasons = joined([each.get(meter) for each in of], self._lengths)

                def why(item: int, reasons: Mapping[int, str] = reasons) -> str:
                    return reasons.get(item, NOT_APPRAISED)

                name, heading, _, digits = measure
                found.append(self._made(name, heading, digits, values, why))
        return found

    def _costs(self) -> list[Measured]:
        retrievals = self._all(lambda part: part.retrievals)
        usage = {
            name: np.concatenate([part.usage[name] for part in self.parts])
            for name in ("calls", "input_tokens", "output_tokens", "uncounted")
        }
        unknown = usage["uncounted"] > 0
        tokens = np.where(unknown, np.nan, usage["input_tokens"] + usage["output_tokens"])
        seconds = self._all(lambda part: part.seconds)
        money, why = self._money()
        headings = {each.name: (each.name, each.heading, each.digits) for each in COSTS}
        return [
            self._made(*headings["retrievals"], retrievals, lambda _: ""),
            self._made(*headings["calls"], usage["calls"], lambda _: ""),
            self._made(*headings["tokens"], tokens, lambda _: UNCOUNTED),
            self._made(*headings["seconds"], seconds, lambda _: UNTIMED),
            self._made("cost", self._currency, 4, money, why),
        ]

    def _money(self) -> tuple[Floats, Why]:
        parts, reasons = [], []
        for part in self.parts:
            reader = self.experiments[part.experiment].reader
            price = self.prices(reader)
            known = price.model is not None
            reasons.append(UNCOUNTED if known else f"no price is known of {reader}")
            cost = price.charge(part.usage, part.retrievals)
            missing = (part.usage["uncounted"] > 0) | (not known)
            parts.append(np.where(missing, np.nan, cost))
        ends = np.cumsum(self._lengths).tolist()
        return np.concatenate(parts), lambda item: reasons[bisect_right(ends, item)]

    @cached_property
    def _currency(self) -> str:
        found = {self.prices(each.reader).currency for each in self.experiments.values()}
        return " or ".join(sorted(found)) or "cost"

    @cached_property
    def _lengths(self) -> list[int]:
        return [len(part.arm) for part in self.parts]

    def _all(self, column: Callable[[ResultColumns], Floats]) -> Floats:
        return np.concatenate([column(part) for part in self.parts])


def joined(parts: Sequence[Numbers | None], lengths: Sequence[int]) -> Numbers:
    """The numbers one after the other; None stands for as many missing ones."""
    values: list[Floats] = []
    reasons: dict[int, str] = {}
    start = 0
    for part, length in zip(parts, lengths, strict=True):
        values.append(np.full(length, np.nan) if part is None else part.values)
        if part is not None:
            reasons |= {place + start: why for place, why in part.reasons.items()}
        start += length
    return Numbers(np.concatenate(values), reasons)


def _scores(
    metric: AnswerMetric, asked: Sequence[tuple[QuestionRow, str | None]]
) -> list[float | str]:
    if isinstance(metric, StringMetric):
        return metric.scores([(answer, question.answers) for question, answer in asked])
    cases = [
        # Validated when stored; there may be tens of thousands.
        Case(Question.model_construct(text=q.text, answers=q.answers, id=q.id), answer)
        for q, answer in asked
    ]
    return [s.reason or "" if s.value is None else s.value for s in metric.score(cases)]
