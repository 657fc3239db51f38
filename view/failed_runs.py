"""The errors of an experiment's runs by EoR, as the heat map counts them and as the list behind one
of its cells names them."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from hopscope.lab.answer_metric import answer_metric
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Record
from hopscope.store.store import Store
from hopscope.tracing.error_decomposition.errors import AnswerErrors, profile
from hopscope.tracing.error_decomposition.report import RunErrors, error_report

Error = Literal["retriever", "extraction", "hallucination"]
ERRORS: tuple[Error, ...] = ("retriever", "extraction", "hallucination")
RUN, UNKNOWN = "run", "unknown"
"""The place of the whole run, and the hops of a question that names none."""


class FailedRun(Record):
    """A run with its errors."""

    hops: int | None
    """Of its question."""
    errors: RunErrors
    """As `hopscope errors --json` prints them."""


class Cell(NamedTuple):
    """A cell of the heat map, or several: what is None is left open."""

    error: Error | None = None
    step: str | None = None
    """The number of a step, or `run`."""
    hops: str | None = None
    """A number, or `unknown`."""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "Cell":
        """The cell of a form, whose empty fields are open.

        Raises:
            UsageError: there is no such kind of error.
        """
        error = given.get("error") or None
        chosen = next((each for each in ERRORS if each == error), None)
        if error is not None and chosen is None:
            raise UsageError(f"no error {error!r}: choose from {', '.join(ERRORS)}")
        return cls(chosen, given.get("step") or None, given.get("hops") or None)


def judged(store: Store, hops: Mapping[str, int | None]) -> list[FailedRun]:
    """The errors of runs, given by id with the hops of their questions; by exact match."""
    metric = answer_metric("exact_match", reader="tiny", entailment="lexical")
    found = error_report(list(store.load_all(hops)), metric)
    return [FailedRun(hops=hops[each.id], errors=each) for each in found.runs]


def shares(runs: Iterable[FailedRun]) -> list[dict[str, Any]]:
    """Shares of errors by step and hops, the rows of the heat map."""
    groups: dict[tuple[str, int], list[AnswerErrors]] = {}
    for run in runs:
        for located in run.errors.errors:
            if located.errors is not None:
                place = _hops(run), -1 if located.step is None else located.step
                groups.setdefault(place, []).append(located.errors)
    return [
        {
            "error": error,
            "hops": of_hops,
            "order": step,
            "step": RUN if step < 0 else str(step),
            "share": share.value,
            "low": share.low,
            "high": share.high,
            "answers": share.n,
        }
        for (of_hops, step), errors in sorted(groups.items())
        for error, share in profile(errors).items()
        if error in ERRORS
    ]


def within(runs: Iterable[FailedRun], cell: Cell) -> list[FailedRun]:
    """The runs that a cell counts as having its error; with an open step, anywhere."""
    return [
        run for run in runs if (cell.hops is None or _hops(run) == cell.hops) and places(run, cell)
    ]


def places(run: FailedRun, cell: Cell) -> dict[str, list[Error]]:
    """The errors of a run that belong to a cell, by step."""
    found: dict[str, list[Error]] = {}
    for located in run.errors.errors:
        step = RUN if located.step is None else str(located.step)
        if located.errors is None or cell.step not in (None, step):
            continue
        kinds = [each for each in ERRORS if getattr(located.errors, each)]
        if own := [each for each in kinds if cell.error in (None, each)]:
            found[step] = own
    return found


def _hops(run: FailedRun) -> str:
    return UNKNOWN if run.hops is None else str(run.hops)
