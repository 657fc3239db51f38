"""People's labels beside the credit, and whether credit agrees with people.

A label of a passage stands beside the credit of that passage, one of a step beside the credit of
that step, and one of a run or its answer beside the total and the answer's scores. Agreement is
Spearman's rho over all that was labelled, with an interval over questions.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from hopscope.api import stored
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime import components
from hopscope.runtime.errors import UsageError
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import Credit, Measurement, Run
from hopscope.store.labels import Label
from hopscope.store.store import Store
from hopscope.tracing import answer_metrics
from hopscope.tracing.reports.appraised import shown_credits
from hopscope.tracing.reports.displays import leading
from hopscope.tracing.scoring.metric import case_of
from hopscope.tracing.statistics.correlation import rank_correlation

METRICS = ("exact_match", "f1")
WORDS: Mapping[str, float] = dict.fromkeys(
    ("yes", "true", "relevant", "correct", "right", "good", "useful", "pass"), 1.0
) | dict.fromkeys(
    ("no", "false", "irrelevant", "incorrect", "wrong", "bad", "useless", "fail"), 0.0
)
"""Scores of labels that have none."""
RULES = ("shapley", "leave_one_out", "solo", "trajectory")
"""The rule whose credit stands beside a label: the first that was measured."""
NONE = "no credit was measured for it"

Worth = dict[str, Measurement]
"""By `METER.RULE`, or by answer metric."""


def labels(
    *specs: str, store: Store | str | Path | None = None, seed: int = 0, resamples: int = 1000
) -> list[Table]:
    """The tables `labels` and `agreement`.

    Args:
        specs: ids of runs or their beginnings, `last`, or names of experiments.
        resamples: of the bootstrap over questions.

    Raises:
        UsageError: there is no such run, or none of them has a label.
    """
    if isinstance(store, Store):
        return _labels(store, specs, seed, resamples)
    with Store.open(store, create=False, reading=True) as opened:
        return _labels(opened, specs, seed, resamples)


def score(label: Label) -> float | None:
    """The label's score, or what its word stands for."""
    return label.score if label.score is not None else WORDS.get((label.label or "").lower())


def _labels(store: Store, specs: Sequence[str], seed: int, resamples: int) -> list[Table]:
    given = store.labels.of([*stored.ids(store, specs)])
    if not given:
        raise UsageError(
            "none of these runs has a label: get them with `hopscope pull`, or give them in the "
            "local view"
        )
    rows: list[dict[str, Cell]] = []
    units: dict[tuple[str, str], dict[tuple[object, ...], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    worths: dict[tuple[object, ...], Worth] = {}
    questions: dict[str, str] = {}
    for run_id, own in given.items():
        run, credits = store.load(run_id), shown_credits(store.credits(run_id))
        questions[run_id] = run.question.text
        for label in own:
            place = (run_id, label.target, label.step, label.passage)
            if place not in worths:
                worths[place] = _worth(label, run, credits)
            rows.append(_row(label, worths[place], credits))
            value = score(label)
            if value is not None:
                units[label.name, label.target][place].append(value)
    agreed = [
        row
        for (name, target), places in units.items()
        for row in _agreement(name, target, places, worths, questions, seed, resamples)
    ]
    return [_listed(rows), _agreed(agreed)]


def _worth(label: Label, run: Run, credits: Iterable[Credit]) -> Worth:
    """The measurements of what is labelled."""
    if label.target in ("run", "answer"):
        found = {
            name: components.named(answer_metrics, Spec.parse(name))().score([case_of(run)])[0]
            for name in METRICS
        }
        totals = (c for c in credits if c.step is None and c.rule == "total")
        return {f"{c.meter}.{c.rule}": c.measurement for c in totals} | found
    return {
        f"{c.meter}.{c.rule}": c.measurement
        for c in credits
        if c.rule != "level" and (c.step, c.passage) == (label.step, label.passage)
    }


def _row(label: Label, worth: Worth, credits: Sequence[Credit]) -> dict[str, Cell]:
    meter = leading(credit.meter for credit in credits)
    rules = ("total",) if label.target in ("run", "answer") else RULES
    by = next((name for rule in rules if (name := f"{meter}.{rule}") in worth), None)
    credit = worth[by] if by else Measurement(value=None, reason=NONE)
    return {
        "run": label.run_id[:12],
        "of": _of(label),
        "name": label.name,
        "label": label.label,
        "score": label.score,
        "credit": credit,
        "by": by,
        "note": label.note,
        "author": label.author or None,
        "source": label.source,
        "made": f"{label.made:%Y-%m-%d %H:%M}",
    }


def _of(label: Label) -> str:
    if label.step is None:
        return label.target
    return f"step {label.step}" if label.passage is None else f"step {label.step}: {label.passage}"


def _agreement(
    name: str,
    target: str,
    places: Mapping[tuple[object, ...], Sequence[float]],
    worths: Mapping[tuple[object, ...], Worth],
    questions: Mapping[str, str],
    seed: int,
    resamples: int,
) -> Iterable[dict[str, Cell]]:
    """A row for each measure of what bears labels of a name; several people's are averaged."""
    measures = dict.fromkeys(measure for place in places for measure in worths[place])
    for measure in measures:
        pairs = [
            (fmean(scores), value, questions[str(place[0])])
            for place, scores in places.items()
            if (found := worths[place].get(measure)) is not None
            and (value := found.value) is not None
        ]
        if not pairs:
            continue
        people, credit, clusters = zip(*pairs, strict=True)
        yield {
            "name": name,
            "of": target,
            "measure": measure,
            "agreement": rank_correlation(
                "spearman", people, credit, clusters=clusters, seed=seed, resamples=resamples
            ),
            "labels": len(pairs),
            "unmeasured": len(places) - len(pairs),
            "questions": len(set(clusters)),
        }


def _listed(rows: Sequence[dict[str, Cell]]) -> Table:
    return Table(
        name="labels",
        title="People's labels beside the credit",
        columns={
            "run": "run",
            "of": "of",
            "name": "name",
            "label": "label",
            "score": "score",
            "credit": "credit",
            "by": "by",
            "note": "note",
            "author": "who",
            "source": "where",
            "made": "when",
        },
        rows=tuple(rows),
    )


def _agreed(rows: Sequence[dict[str, Cell]]) -> Table:
    estimators = dict.fromkeys(
        cell.estimator for row in rows for cell in row.values() if isinstance(cell, Measurement)
    )
    return Table(
        name="agreement",
        title="Agreement of credit with people",
        columns={
            "name": "name",
            "of": "of",
            "measure": "measure",
            "agreement": "ρ",  # noqa: RUF001
            "labels": "labels",
            "unmeasured": "without credit",
            "questions": "questions",
        },
        rows=tuple(rows),
        notes=tuple(each for each in estimators if "interval" in each),
    )
