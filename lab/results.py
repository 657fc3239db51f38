"""The done items of one or more experiments, as tables look at them.

Invariants: a value that was not measured is the reason why not; an item that failed has no value of
anything; equal questions are one, whichever experiment asked them, so that runs on one question are
never taken for independent.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from math import nan
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopscope.lab.statistics import Bootstrap, Column, Floats
from hopscope.runtime.errors import UsageError
from hopscope.runtime.prices import Price
from hopscope.runtime.types import Question, Run, Usage
from hopscope.store.experiment_records import Experiment
from hopscope.store.figures import Asked, Figures, Retrieval, Value
from hopscope.tracing.answer_metrics._metric import AnswerMetric, Case

if TYPE_CHECKING:
    from hopscope.tracing.erag import ERAG

Places = NDArray[np.int64]

By = Literal["workflow", "experiment", "reader", "retriever", "seed", "hops", "kind"]
"""What rows of tables are told apart by, besides the arm: a setting of the experiments, or a
property of the questions."""
OF_QUESTIONS: tuple[By, ...] = ("hops", "kind")

FAILED = "the run failed"
UNCOUNTED = "the reader's server does not tell how many tokens"
BATCH = 250
"""Answers that are judged at once."""


class Measure(NamedTuple):
    """A figure of single items."""

    name: str
    heading: str
    done: Callable[[Figures], Value]
    """Of an item that did not fail."""
    digits: int = 2

    def of(self, found: Figures) -> Value:
        return FAILED if found.error else self.done(found)

    def all(self, found: Sequence[Figures]) -> list[Value]:
        """`of` each."""
        return [FAILED if each.error else self.done(each) for each in found]


def _usage(found: Figures) -> Usage:
    # Checked when it was stored, and there may be tens of thousands.
    return Usage.model_construct(
        input_tokens=found.input_tokens,
        output_tokens=found.output_tokens,
        calls=found.calls,
        thinking_tokens=found.thinking_tokens,
        cached_tokens=found.cached_tokens,
        uncounted=found.uncounted,
    )


def _tokens(found: Figures) -> Value:
    return UNCOUNTED if found.uncounted else found.tokens


UTILITIES = (
    Measure("seper", "SePer", attrgetter("seper")),
    Measure("seper_delta", "ΔSePer", attrgetter("seper_delta")),
    Measure("grogu", "GroGU", attrgetter("grogu")),
)
COSTS = (
    Measure("retrievals", "retrievals", attrgetter("retrievals")),
    Measure("calls", "calls", attrgetter("calls"), 1),
    Measure("tokens", "tokens", _tokens, 0),
    Measure("seconds", "seconds", attrgetter("seconds")),
)
HEADINGS: Mapping[str, str] = {"exact_match": "EM", "f1": "F1", "contains": "contains"}


@dataclass(frozen=True)
class Results:
    """What tables are made from. Runs are loaded when a table asks for them, and not before."""

    figures: Sequence[Figures]
    experiments: Mapping[str, Experiment]
    """By name: all that figures come from."""
    _: KW_ONLY
    metrics: Mapping[str, AnswerMetric]
    """How answers are judged, by the name they were asked for."""
    verdict: str
    """The one of `metrics` that says whether an answer is right."""
    threshold: float = 0.8
    """From which value of it on."""
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    by: By = "workflow"
    load_retrievals: Callable[[], Sequence[Retrieval]] = tuple
    """All of these items' runs."""
    load_runs: Callable[[Iterable[str]], Sequence[Run]] = lambda _: ()
    """The runs of these ids."""
    prices: Callable[[str], Price] = lambda _: Price()
    """What a reader of this name costs."""
    appraisals: tuple[str, ...] = ()
    """By what the utilities were measured, in words: notes of every table that has them."""
    erag: "ERAG | None" = None
    """What labels passages; None where no reader was named for it."""

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """Their labels, in the order of the experiments' arms."""
        present = {self._system(found): None for found in self.figures}
        planned = [
            self._label(experiment, arm.label)
            for experiment in self.experiments.values()
            for arm in experiment.arms
        ]
        return tuple(dict.fromkeys([*(s for s in planned if s in present), *present]))

    @cached_property
    def by_system(self) -> dict[str, list[Figures]]:
        found: dict[str, list[Figures]] = {system: [] for system in self.systems}
        for figures in self.figures:
            found[self._system(figures)].append(figures)
        return found

    @cached_property
    def questions(self) -> dict[Asked, int]:
        """Their places in the arrays of columns."""
        distinct = dict.fromkeys(figures.asked for figures in self.figures)
        return {asked: place for place, asked in enumerate(distinct)}

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """All there are: of answers, utility, and cost."""
        judged = [
            Measure(name, HEADINGS.get(name, name), self._scores(name)) for name in self.metrics
        ]
        return (
            *judged,
            *UTILITIES,
            *COSTS,
            Measure("cost", self._currency, self._cost, 4),
        )

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
            places, ones = self._places([figures.asked for figures in rows]), np.ones(len(rows))
            for measure in self.measures:
                found[system, measure.name] = self._column(
                    places,
                    measure.all(rows),
                    ones,
                    binary=measure.name in self.metrics and self.metrics[measure.name].binary,
                )
        return found

    def mean(
        self, asked: Sequence[Asked], values: Sequence[Value], *, binary: bool = False
    ) -> Column:
        """The mean of any values of questions."""
        return self.ratio(asked, values, np.ones(len(values)), binary=binary)

    def ratio(
        self,
        asked: Sequence[Asked],
        values: Sequence[Value],
        weights: Sequence[float] | Floats,
        *,
        binary: bool = False,
    ) -> Column:
        """The sum of any values of questions by that of the weights of those measured."""
        given = np.asarray(weights, float)
        return self._column(self._places(asked), values, given, binary=binary)

    def _places(self, asked: Sequence[Asked]) -> Places:
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

    def right(self, found: Figures) -> bool | None:
        """Whether an item's answer is; None where nobody can say."""
        value = self.measure(self.verdict).of(found)
        return None if isinstance(value, str) else value >= self.threshold

    @cached_property
    def retrievals(self) -> dict[str, list[Retrieval]]:
        """By run, in order; runs without any are left out."""
        found: dict[str, list[Retrieval]] = {}
        for retrieval in self.load_retrievals():
            found.setdefault(retrieval.run_id, []).append(retrieval)
        return found

    @cached_property
    def runs(self) -> dict[str, list[Run]]:
        """Whole runs by system. Their `workflow` is the system's label."""
        found: dict[str, list[Run]] = {}
        for system, rows in self.by_system.items():
            ids = [figures.run_id for figures in rows if figures.run_id is not None]
            update = {"workflow": system}
            found[system] = [run.model_copy(update=update) for run in self.load_runs(ids)]
        return found

    def strata(self) -> list[tuple[str, "Results"]]:
        """The results by what questions are told apart by; all together if it is no such thing."""
        if self.by not in OF_QUESTIONS:
            return [("", self)]
        parts: dict[int | str | None, list[Figures]] = {}
        for figures in self.figures:
            parts.setdefault(getattr(figures.asked, self.by), []).append(figures)
        named = [
            ("unknown" if value in ("", None) else str(value), rows)
            for value, rows in parts.items()
        ]
        return [(name, replace(self, figures=rows)) for name, rows in sorted(named)]

    @cached_property
    def _currency(self) -> str:
        found = {self.prices(each.reader).currency for each in self.experiments.values()}
        return " or ".join(sorted(found)) or "cost"

    def _cost(self, found: Figures) -> Value:
        reader = self.experiments[found.experiment].reader
        price = self._price[reader]
        if price.model is None:
            return f"no price is known of {reader}"
        cost = price.of(_usage(found), queries=found.retrievals)
        return UNCOUNTED if cost is None else cost

    @cached_property
    def _price(self) -> dict[str, Price]:
        return {each.reader: self.prices(each.reader) for each in self.experiments.values()}

    @cached_property
    def _judged(self) -> dict[str, dict[tuple[Asked, str | None], Value]]:
        """By metric, what it says of each answer to each question; equal ones are judged once."""
        pairs = list(dict.fromkeys((f.asked, f.answer) for f in self.figures if not f.error))
        asked = {
            # Checked when they were stored, and there may be ten thousand.
            each: Question.model_construct(text=each.text, answers=each.answers, id=each.id)
            for each in self.questions
        }
        found: dict[str, dict[tuple[Asked, str | None], Value]] = {n: {} for n in self.metrics}
        # A few at a time, so that what one metric normalised is remembered for the next.
        for start in range(0, len(pairs), BATCH):
            part = pairs[start : start + BATCH]
            cases = [Case(asked[question], answer) for question, answer in part]
            for name, metric in self.metrics.items():
                for pair, score in zip(part, metric.score(cases), strict=True):
                    found[name][pair] = score.reason or "" if score.value is None else score.value
        return found

    def _scores(self, name: str) -> Callable[[Figures], Value]:
        return lambda found: self._judged[name][found.asked, found.answer]

    def _system(self, found: Figures) -> str:
        return self._label(self.experiments[found.experiment], found.arm)

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
