"""`hopscope.gate`: whether an experiment's scores fell below its baseline by more than is allowed.

One test for each metric of each workflow, paired by question and one-sided, with Holm's correction
(1979) over all of them; docs/integrations/gate.md argues for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hopscope.api import parts
from hopscope.lab.gate import outcomes
from hopscope.lab.gate.outcomes import ANSWERED, Outcomes
from hopscope.lab.gate.report import GateReport, GateRow
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.counting import counted
from hopscope.store.experiments.appraisals import ORIGINAL
from hopscope.store.experiments.result_rows import Value
from hopscope.tracing.statistics.drops import Drop, drops, power
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, estimates, holm

if TYPE_CHECKING:
    from hopscope.store.store import Store

DEFAULT_METRICS = (ANSWERED, "f1", "seper")
"""SePer only if it was measured for both."""
FIND = 0.05
CONFIDENCE = 0.95
RESAMPLES = 2000


def gate(
    experiment: str,
    baseline: str | Path,
    *,
    metrics: Mapping[str, float] | Sequence[str] | None = None,
    drop: float = 0.0,
    find: float = FIND,
    confidence: float = CONFIDENCE,
    workflows: Sequence[str] = (),
    store: "str | Path | Store | None" = None,
    appraisal: str = ORIGINAL,
    resamples: int = RESAMPLES,
    seed: int = 0,
    reader: str = parts.TINY,
    entailment: str = "lexical",
) -> GateReport:
    """Compare an experiment with its baseline on the same questions.

    Args:
        experiment: the name of an experiment.
        baseline: the name of another of the same database, or a file of `write_baseline`.
        metrics: metrics of answers or meters, or `answered` (the share of runs that did not fail),
            with the allowed drop of each; by default `answered`, `f1`, and `seper` if both have it.
        drop: the allowed drop of metrics without one.
        find: the powers are those to find a drop larger than the allowed one by this much.
        confidence: 1 minus the chance of any false alarm.
        workflows: labels of workflows; by default all of both.
        store: the database; by default that of the command line.
        appraisal: the measurements by meters: `original`, `latest`, or a hash.
        resamples: of the bootstrap and the randomisation test.
        seed: of both, and of the simulations of power.
        reader, entailment: for metrics that use a model.

    Raises:
        UsageError: there is no such experiment, file, metric or workflow, a metric was measured for
            no question, or nothing can be paired.
        StoreError: the database cannot be read.
    """
    allowed = _allowed(metrics, drop)
    for option, number, least in (("drop", min(allowed.values()), 0.0), ("find", find, 1e-6)):
        if not least <= number:
            raise UsageError(f"{option}: give a number of at least {least:g}, not {number:g}")
    if not 0.5 <= confidence < 1:
        raise UsageError(f"confidence: give a number from 0.5 to below 1, not {confidence:g}")
    with _opened(store) as opened:

        def scored(name: str) -> Outcomes:
            return outcomes.of_experiment(
                opened,
                name,
                tuple(allowed),
                appraisal=appraisal,
                reader=reader,
                entailment=entailment,
            )

        now = scored(experiment)
        known = isinstance(baseline, str) and opened.experiments.known(baseline) is not None
        then = scored(str(baseline)) if known else _from_file(baseline, opened.name)
    if metrics is None:
        absent = [name for name in allowed if not (then.measured(name) and now.measured(name))]
        allowed = {name: most for name, most in allowed.items() if name not in absent}
    _check_measured(then, now, tuple(allowed))
    paired = _workflows(then, now, workflows)
    cells = [(one, other, name) for one, other in paired for name in allowed]
    bootstrap = Bootstrap(resamples=resamples, seed=seed)
    columns = [_columns(then, now, *cell) for cell in cells]
    found = drops(columns, [allowed[name] for *_, name in cells], bootstrap)
    alpha = round(1 - confidence, 12)
    tested = sum(each.p is not None for each in found)
    if not tested:
        raise UsageError(
            f"no metric was measured on two or more questions of both {now.source.experiment} and "
            f"{then.source.experiment}: {next((e.reason for e in found if e.reason), 'too few')}"
        )
    means = estimates([column for pair in columns for column in pair], bootstrap)
    rows = []
    for place, (drop_found, adjusted) in enumerate(
        zip(found, holm([each.p for each in found]), strict=True)
    ):
        before, after = columns[place]
        rows.append(
            GateRow(
                workflow=cells[place][1],
                metric=cells[place][2],
                baseline=means[2 * place],
                candidate=means[2 * place + 1],
                drop=drop_found.model_copy(update={"adjusted": adjusted}),
                power=power(
                    before,
                    after,
                    allowed=drop_found.allowed,
                    drop=drop_found.allowed + find,
                    level=alpha / tested,
                    seed=seed,
                ),
                verdict="unmeasured"
                if adjusted is None
                else "fell"
                if adjusted <= alpha
                else "passed",
            )
        )
    return GateReport(
        passed=all(row.verdict != "fell" for row in rows),
        candidate=now.source,
        baseline=then.source,
        confidence=confidence,
        find=find,
        rows=tuple(rows),
        only_candidate=_without_counterpart(now, then),
        only_baseline=_without_counterpart(then, now),
        notes=tuple(_notes(then, now, paired, tuple(allowed), rows, tested)),
    )


def write_baseline(
    experiment: str,
    file: str | Path,
    *,
    metrics: Sequence[str] | None = None,
    store: "str | Path | Store | None" = None,
    appraisal: str = ORIGINAL,
    reader: str = parts.TINY,
    entailment: str = "lexical",
) -> Outcomes:
    """Write the scores of an experiment to a file, as baseline of later ones. It holds the texts of
    the questions, and no answers.

    Args:
        metrics: as for `gate`; by default `answered`, `exact_match`, `f1`, `contains` and all that
            meters measured.

    Raises:
        UsageError: there is no such experiment or metric, nothing is done yet, or the file cannot
            be written.
        StoreError: the database cannot be read.
    """
    with _opened(store) as opened:
        found = outcomes.of_experiment(
            opened, experiment, metrics, appraisal=appraisal, reader=reader, entailment=entailment
        )
    outcomes.write(found, Path(file))
    return found


@contextmanager
def _opened(store: "str | Path | Store | None") -> "Iterator[Store]":
    """The store; one that the caller opened stays open."""
    from hopscope.store.store import Store

    if store is not None and not isinstance(store, str | Path):
        yield store
        return
    with Store.open(store, create=False, reading=True) as opened:
        yield opened


def _allowed(metrics: Mapping[str, float] | Sequence[str] | None, drop: float) -> dict[str, float]:
    if isinstance(metrics, str):
        metrics = [metrics]
    if isinstance(metrics, Mapping):
        found = dict(metrics)
    else:
        found = dict.fromkeys(DEFAULT_METRICS if metrics is None else metrics, drop)
    if not found:
        raise UsageError("metrics: name at least one")
    return found


def _from_file(baseline: str | Path, database: str) -> Outcomes:
    path = Path(baseline)
    if not path.is_file():
        raise UsageError(
            f"no baseline {str(baseline)!r}: it is neither an experiment of {database} nor a file; "
            "make one with `hopscope gate EXP --write FILE`"
        )
    return outcomes.read(path)


def _check_measured(then: Outcomes, now: Outcomes, metrics: Sequence[str]) -> None:
    for name in metrics:
        if name not in then.metrics:
            raise UsageError(
                f"the baseline {then.source.experiment} has no {name}, but "
                f"{', '.join(then.metrics)}: write it again with --metric {name}"
            )
        for side in (now, then):
            if not side.measured(name):
                reasons = (v for of in side.scores.values() for v in of[name] if v != "not asked")
                raise UsageError(
                    f"{name} was measured for no question of {side.source.experiment} "
                    f"({next(reasons, 'not asked')}): measure it with `hopscope eval --meter` or "
                    "`hopscope credit`, or leave it out"
                )


def _workflows(then: Outcomes, now: Outcomes, wanted: Sequence[str]) -> list[tuple[str, str]]:
    """The workflow of the baseline and that of the experiment, for each pair."""
    for label in wanted:
        if label not in now.scores:
            raise UsageError(
                f"{now.source.experiment} has no workflow {label!r}: it has {', '.join(now.scores)}"
            )
    own = list(wanted) or list(now.scores)
    same = [(label, label) for label in own if label in then.scores]
    if same:
        return same
    if len(own) == len(then.scores) == 1:
        return [(next(iter(then.scores)), own[0])]
    raise UsageError(
        f"no workflow is in both: {now.source.experiment} has {', '.join(own)}, "
        f"{then.source.experiment} has {', '.join(then.scores)}"
    )


def _columns(
    then: Outcomes, now: Outcomes, before: str, after: str, metric: str
) -> tuple[Column, Column]:
    """The values of both, over the questions that both measured; the others are 0 of 0."""
    keys = [question.key for question in now.questions if question.key in then.places]
    one = [then.value(before, metric, key) for key in keys]
    other = [now.value(after, metric, key) for key in keys]
    asked = np.array(
        [outcomes.NOT_ASKED not in pair for pair in zip(one, other, strict=True)], float
    )
    measured = np.array(
        [not any(isinstance(value, str) for value in pair) for pair in zip(one, other, strict=True)]
    )
    reasons = [value for pair in zip(other, one, strict=True) for value in pair]
    reason = next((value for value in reasons if isinstance(value, str)), "no common question")
    binary = metric in then.binary and metric in now.binary

    def column(values: list[Value]) -> Column:
        above = [
            0.0 if isinstance(value, str) or not kept else value
            for value, kept in zip(values, measured, strict=True)
        ]
        ones = measured.astype(float)
        return Column(np.array(above, float), ones, ones, asked, binary=binary, reason=reason)

    return column(one), column(other)


def _without_counterpart(of: Outcomes, other: Outcomes) -> tuple[str, ...]:
    return tuple(question.name for question in of.questions if question.key not in other.places)


def _notes(
    then: Outcomes,
    now: Outcomes,
    paired: Sequence[tuple[str, str]],
    metrics: Sequence[str],
    rows: Sequence[GateRow],
    tested: int,
) -> Iterator[str]:
    yield (
        f"power: the chance to find a drop of that size with these questions, by simulation, at "
        f"the level of the first of {tested} tests: Holm's correction finds it at least as often"
    )
    for row in rows:
        drop: Drop = row.drop
        if drop.measured < drop.total:
            left = drop.total - drop.measured
            why = _reason(then, now, row)
            yield (
                f"{row.name}: {left:,} of {counted(drop.total, 'question is', 'questions are')} "
                f"not measured for both ({why})"
            )
        if row.power.chance.value is None and drop.value is not None:
            yield f"{row.name}: no power, because {row.power.chance.reason}"
    for before, after in paired:
        if before != after:
            yield f"{after} is compared with the baseline's {before}"
    for side, other in ((now, then), (then, now)):
        alone = [
            label
            for label in side.scores
            if label not in {name for pair in paired for name in pair} | set(other.scores)
        ]
        if alone:
            yield f"only in {side.source.experiment} and left out: workflow {', '.join(alone)}"
    for field in ("reader", "retriever", "entailment", "appraisal"):
        before, after = getattr(then.source, field), getattr(now.source, field)
        used = field in ("reader", "retriever") or any(map(outcomes.of_meter, metrics))
        if before != after and used:
            yield f"{field} differs: {before} → {after}"


def _reason(then: Outcomes, now: Outcomes, row: GateRow) -> str:
    """The most common reason why a question has no value."""
    found = [
        value
        for side in (now, then)
        for of in (side.scores.get(row.workflow, {}),)
        for value in of.get(row.metric, ())
        if isinstance(value, str) and value != outcomes.NOT_ASKED
    ]
    return max(found, key=found.count) if found else "unknown"
