"""The scores of an experiment, question by question: all that a gate needs of it.

A baseline is such a record in a small file, which a repository keeps beside its tests. A value that
was not measured is the reason as text, never a number.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from hopscope.api import parts
from hopscope.lab.answer_metric import answer_metric
from hopscope.lab.experiments.results import COSTS, Measure, Results, utilities_of
from hopscope.runtime import code_files, components
from hopscope.runtime.choices import did_you_mean
from hopscope.runtime.code_files import shown
from hopscope.runtime.errors import UsageError
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import Provenance, Record, digest
from hopscope.store.experiments.appraisals import ORIGINAL, select_appraisal
from hopscope.store.experiments.result_rows import NOT_APPRAISED, QuestionRow, ResultRow, Value
from hopscope.store.store import Store
from hopscope.tracing import answer_metrics, meters

if TYPE_CHECKING:
    from hopscope.tracing.scoring.metric import AnswerMetric

ANSWERED = "answered"
"""The share of questions whose run did not fail: failed runs have no other value."""
ALWAYS = ("exact_match", "f1", "contains")
"""Answer metrics of every baseline."""
NOT_ASKED = "not asked"
FORMAT: Literal["hopscope-baseline"] = "hopscope-baseline"
VERSION: Literal[1] = 1


class AskedQuestion(Record):
    id: str
    text: str
    key: str
    """Hash of the id, the text and the gold answers: equal questions are one question."""

    @property
    def name(self) -> str:
        return self.id or self.text


class Source(Record):
    """The experiment that scores belong to."""

    experiment: str
    created: datetime
    seed: int
    reader: str
    retriever: str
    entailment: str
    appraisal: str | None
    """Reader and settings of the meters; None if no meter measured."""


class Outcomes(Record):
    format: Literal["hopscope-baseline"] = FORMAT
    version: Literal[1] = VERSION
    source: Source
    questions: tuple[AskedQuestion, ...]
    binary: tuple[str, ...]
    """Metrics whose values are 0 or 1."""
    scores: dict[str, dict[str, tuple[Value, ...]]]
    """By workflow and metric; values in the order of the questions."""

    @cached_property
    def places(self) -> dict[str, int]:
        """The position of each question by its key."""
        return {question.key: place for place, question in enumerate(self.questions)}

    @property
    def metrics(self) -> list[str]:
        return list(dict.fromkeys(name for of in self.scores.values() for name in of))

    def measured(self, metric: str) -> bool:
        """Whether some question has a value."""
        return any(
            not isinstance(value, str)
            for of in self.scores.values()
            for value in of.get(metric, ())
        )

    def value(self, workflow: str, metric: str, key: str) -> Value:
        """The value of a question that this experiment asked."""
        return self.scores[workflow][metric][self.places[key]]


def of_experiment(
    store: Store,
    name: str,
    metrics: Sequence[str] | None,
    *,
    appraisal: str = ORIGINAL,
    reader: str = parts.TINY,
    entailment: str = "lexical",
) -> Outcomes:
    """The scores of an experiment's finished items.

    Args:
        metrics: of answers or of meters, or `answered`; by default the usual ones of answers, and
            all that was measured.

    Raises:
        UsageError: there is no such experiment or metric, or nothing is done yet.
    """
    experiment = store.experiments.find(name)
    rows = store.experiments.result_rows(name, appraisal)
    if not rows:
        raise UsageError(f"nothing of {name} is done yet: continue with `hopscope eval`")
    known = _utilities(rows)
    wanted = (ANSWERED, *ALWAYS, *known) if metrics is None else tuple(dict.fromkeys(metrics))
    built = {
        shown(each): _answer_metric(each, reader=reader, entailment=entailment)
        for each in wanted
        if each != ANSWERED and each not in known and not of_meter(each)
    }
    results = Results(rows, {name: experiment}, metrics=built, verdict="")
    judged = {measure.name: measure for measure in results.measures}
    measures = [_measure(shown(each), {**judged, **known}) for each in wanted]
    places = {question: place for place, question in enumerate(results.questions)}
    scores: dict[str, dict[str, tuple[Value, ...]]] = {}
    for arm, own in results.by_system.items():
        scores[arm] = {}
        for measure in measures:
            values: list[Value] = [NOT_ASKED] * len(places)
            found = [measure.done(row) for row in own] if measure.name == ANSWERED else None
            for row, value in zip(own, found or measure.all(own), strict=True):
                values[places[row.question]] = value
            scores[arm][measure.name] = tuple(values)
    selected = select_appraisal(store.experiments.appraised(name), appraisal)
    return Outcomes(
        source=Source(
            experiment=name,
            created=experiment.created,
            seed=experiment.seed,
            reader=experiment.reader,
            retriever=experiment.retriever,
            entailment=experiment.entailment,
            appraisal=_described(selected.provenance) if selected else None,
        ),
        questions=tuple(map(_asked, places)),
        binary=(ANSWERED, *(name for name, metric in built.items() if metric.binary)),
        scores=scores,
    )


def read(path: Path) -> Outcomes:
    """
    Raises:
        UsageError: the file cannot be read, or is no baseline.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    try:
        found = Outcomes.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole file"
        raise UsageError(
            f"{path} is no baseline ({where}: {first['msg']}): "
            f"make one with `hopscope gate EXP --write {path}`"
        ) from None
    for workflow, of in found.scores.items():
        for metric, values in of.items():
            if len(values) != len(found.questions):
                raise UsageError(
                    f"{path} is damaged: {workflow} has {len(values)} values of {metric} for "
                    f"{len(found.questions)} questions"
                )
    return found


def write(found: Outcomes, path: Path) -> None:
    """
    Raises:
        UsageError: the file cannot be written.
    """
    try:
        path.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def _asked(question: QuestionRow) -> AskedQuestion:
    key = digest(question.id, question.text, *question.answers)
    return AskedQuestion(id=question.id, text=question.text, key=key)


def _described(provenance: Provenance) -> str:
    settings = {**provenance.settings, "seed": provenance.seed}
    told = (f"{key}={value}" for key, value in sorted(settings.items()))
    return ", ".join((provenance.reader, *told))


def _utilities(rows: Sequence[ResultRow]) -> dict[str, Measure]:
    """The measures of meters that measured something."""
    measured = dict.fromkeys(meter for row in rows for meter in row.utilities)
    return {measure.name: measure for meter in measured for measure in utilities_of(meter)}


def of_meter(name: str) -> bool:
    """Whether a metric of this name is the value of a meter."""
    return name.removesuffix("_delta") in components.names(meters)


def _measure(name: str, known: Mapping[str, Measure]) -> Measure:
    if name == ANSWERED:
        return Measure(ANSWERED, ANSWERED, lambda row: float(row.error is None))
    return known.get(name) or Measure(name, name, lambda row: NOT_APPRAISED)


def _answer_metric(name: str, *, reader: str, entailment: str) -> "AnswerMetric":
    if name == "cost" or name in {measure.name for measure in COSTS}:
        raise UsageError(f"{name} is a cost, and a gate tests values whose fall is bad")
    known = components.names(answer_metrics)
    stem = Spec.parse(name).name
    if stem not in known and not code_files.is_code(stem):
        of_meters = components.names(meters)
        choices = [ANSWERED, *known, *of_meters, *(f"{each}_delta" for each in of_meters)]
        raise UsageError(
            f"no metric or meter {name!r}: choose from {', '.join(choices)}"
            f"{did_you_mean(stem, choices)}"
        )
    return answer_metric(name, reader=reader, entailment=entailment)
