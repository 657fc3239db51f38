"""Rankings and labels in TREC's forms, for trec_eval and its relatives.

    QUESTION Q0 PASSAGE RANK SCORE TAG       a ranking (TREC calls it a run)
    QUESTION 0 PASSAGE LABEL                 labels (qrels)

A ranking is the run's own (`tracing.reports.shown`), of all passages that it showed a model, or
one step's retrieved passages; scores only express the order. Labels are whole numbers: eRAG's for
binary metrics, else hundredths; negative values become 0, because trec_eval takes them for
unjudged. A passage with labels from several runs of a question gets the highest.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from hopscope.lab.export.sheets import whole
from hopscope.lab.export.sources import done
from hopscope.runtime.errors import HopscopeError
from hopscope.runtime.types import Credit, Question, Record, Run, digest
from hopscope.store.experiments.records import Experiment
from hopscope.store.store import Store
from hopscope.tracing.erag.labels import ERAG
from hopscope.tracing.reports.appraised import shown_provenance
from hopscope.tracing.reports.shown import shown_passages

HUNDREDTHS = 100
Labels = dict[str, float | None]
"""By the passage's key; None without a label."""


class Ranked(Record):
    """The ranking of one question."""

    question: str
    passages: tuple[str, ...]
    """Keys, best first."""


def question_id(question: Question) -> str:
    """The dataset's id, else a hash of the question."""
    return question.id or digest(question.text)[:16]


def of_run(run: Run) -> Ranked:
    """All passages that the run showed, in the run's own ranking."""
    return Ranked(question=question_id(run.question), passages=tuple(shown_passages(run)))


def of_steps(run: Run) -> list[Ranked]:
    """The retrieved passages of each step. The step's index follows the question's id."""
    return [
        Ranked(
            question=f"{question_id(run.question)}.{step.index}",
            passages=tuple(dict.fromkeys(hit.passage.key for hit in step.ranked)),
        )
        for step in run.retrievals
    ]


def labels_of_credit(run: Run, credits: Sequence[Credit], *, meter: str = "seper") -> Labels:
    """The credits of the passages that a run showed, by its latest appraisal: the passage's own
    Shapley share if measured, else the share of the step that retrieved it, by Shapley or else by
    trajectory. Passages without credit are left out."""
    provenance = shown_provenance(credits)
    known = {
        (credit.rule, credit.step, credit.passage): credit.measurement.value
        for credit in credits
        if credit.meter == meter and (credit.passage or credit.provenance == provenance)
    }
    shown = shown_passages(run)
    found: Labels = {}
    for step in run.steps:
        places = [("shapley", step.index, None), ("trajectory", step.index, None)]
        for key in step.new:
            place = next((p for p in (("shapley", step.index, key), *places) if p in known), None)
            if key in shown and place is not None:
                found.setdefault(key, known[place])
    return found


def highest(labelled: Iterable[tuple[str, Labels]]) -> dict[str, Labels]:
    """The labels of each question, merged from those of its runs."""
    found: dict[str, Labels] = {}
    for question, labels in labelled:
        of = found.setdefault(question, {})
        for key, label in labels.items():
            known = of.get(key)
            of[key] = known if label is None or (known is not None and known > label) else label
    return found


def write_rankings(path: Path, rankings: Iterable[Ranked], *, tag: str) -> int:
    """Write a file of rankings. Returns the number of lines.

    Raises:
        UsageError: it cannot be written.
    """
    lines = []
    for ranked in rankings:
        question, size = word(ranked.question), len(ranked.passages)
        for rank, key in enumerate(ranked.passages):
            lines.append(f"{question} Q0 {word(key)} {rank} {size - rank} {word(tag)}")
    return _write(path, lines)


def write_labels(path: Path, labels: Mapping[str, Labels], *, binary: bool) -> int:
    """Write a file of labels, without unlabelled passages. Returns the number of labels.

    Raises:
        UsageError: it cannot be written.
    """
    scale = 1 if binary else HUNDREDTHS
    lines = [
        f"{word(question)} 0 {word(key)} {max(0, round(scale * label))}"
        for question, of in labels.items()
        for key, label in of.items()
        if label is not None
    ]
    return _write(path, lines)


def _write(path: Path, lines: Sequence[str]) -> int:
    with whole(path) as partial:
        partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


def word(text: str) -> str:
    """The text without white space, which separates columns; `-` if empty."""
    return "".join(quote(c) if c.isspace() or c == "%" else c for c in text) or "-"


def labels_of_erag(erag: ERAG, run: Run) -> Labels:
    """eRAG's labels: the scores of the reader's answers from each passage alone.

    Raises:
        HopscopeError: the run cannot be labelled.
    """
    ranking = erag.appraise(run)[-1]
    values = [label.value for label in ranking.labels]
    return dict(zip(ranking.passages, values, strict=True))


class Collected(NamedTuple):
    """The rankings and labels of an experiment."""

    rankings: dict[str, list[Ranked]]
    """By arm."""
    labels: Mapping[str, Labels]
    """By question, the highest label of each passage."""
    failed: dict[str, str]
    """Reasons, by the ids of runs without labels."""


def collect(store: Store, experiment: Experiment, *, by_step: bool, erag: ERAG | None) -> Collected:
    """
    Args:
        by_step: write one ranking for each step, instead of one for all passages that a run showed.
        erag: labels the passages; without it their stored credits are the labels.
    """
    ranked: dict[str, list[Ranked]] = {arm.label: [] for arm in experiment.arms}
    labelled: list[tuple[str, Labels]] = []
    failed: dict[str, str] = {}
    for item, run in done(store, experiment.name):
        if run is None:
            continue
        rankings = of_steps(run) if by_step else [of_run(run)]
        ranked[item.arm] += rankings
        try:
            known = (
                labels_of_credit(run, store.credits(run.id))
                if erag is None
                else labels_of_erag(erag, run)
            )
        except HopscopeError as error:
            failed[run.id] = str(error)
            continue
        for ranking in rankings:
            own = {key: known[key] for key in ranking.passages if key in known}
            labelled.append((ranking.question, own))
    return Collected(ranked, highest(labelled), failed)
