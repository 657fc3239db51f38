"""Whether a promise holds on fresh questions, at any number of looks.

A promise is kept if the upper bound of each risk is within its limit, broken if the lower bound of
one is above it, and else not yet known. Bounds are by betting (`tracing.statistics.betting`) and
hold at all numbers of questions together: who looks each day errs with probability 1 - level in
all, for each end. A quantile's limit is checked by the share of questions above it, which must be
at most 1 - quantile.

No run is made with the policy. A `value` policy is followed along runs that always retrieved, and
ends each where it would have stopped; a router takes the outcome of the arm that it chooses.

Drift is another question: whether the signals still look like those of the calibration. It is
tested once for all signals together, by Holm's method (1979), for one look.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopscope.lab.budget.outcomes import Outcomes
from hopscope.lab.budget.paths import Path, distinct
from hopscope.lab.budget.promises import routers
from hopscope.lab.budget.promises.choosing import span
from hopscope.lab.budget.promises.following import LEAST, follow, measures, samples
from hopscope.lab.budget.routing.fitting import asked
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Record
from hopscope.tracing.learned.files import LearnedFile, differing
from hopscope.tracing.learned.promise import Measure, Promise, RiskBound, mark
from hopscope.tracing.learned.route_file import RouteFile
from hopscope.tracing.learned.value_file import ValueFile
from hopscope.tracing.statistics import betting
from hopscope.tracing.statistics.betting import Range
from hopscope.tracing.statistics.drift import Moved, compare

Floats = NDArray[np.float64]
Verdict = Literal["kept", "broken", "not yet known"]

BROKEN: Verdict = "broken"
MOST = 10_000_000
"""More questions than that are not asked for."""
ERROR = 0.05
"""The chance that a signal is said to have moved where none has."""


class RiskCheck(Record):
    """One limit on the fresh questions."""

    risk: str
    verdict: Verdict
    of: str
    """What `found`, its bounds and the limit are numbers of."""
    found: float
    low: float
    high: float
    """Bounds at the level, each for itself."""
    limit: float
    level: float
    needed: int | None
    """Questions in all at which it would be known, if they went on like these; None if it is known
    or if that would take too many."""


class MovedSignal(Record):
    """A signal that is unlike that of the calibration."""

    signal: str
    moved: Moved


class Check(Record):
    """A promise on fresh questions."""

    promise: str
    verdict: Verdict
    questions: int
    calibrated: int
    """Questions by which the promise was made."""
    compared: str
    """What stands for the runs with the policy and without."""
    unit: str
    cost: float
    """The mean per question."""
    cost_always: float
    """The same for always retrieving."""
    risks: tuple[RiskCheck, ...]
    signals: int
    """Signals that were compared."""
    moved: tuple[MovedSignal, ...]
    """The signals that moved, the farthest first."""
    fresh: bool
    """False if it has learned from, or was calibrated on, one of the questions. Where its file is
    too old to tell: if the questions have the name of those that it has learned from."""
    known: int | None = None
    """The number of those questions; None where its file is too old to tell."""
    readers: tuple[str, str] | None = None
    """The reader of the promise and that of these runs, if they are two."""
    prompts: tuple[str, str] | None = None
    """The prompts of the promise and those of these runs, if they are others."""


def check_paths(
    file: ValueFile,
    paths: Sequence[Path],
    *,
    source: str = "",
    reader: str = "",
    prompts: Sequence[str] = (),
) -> Check:
    """A `value` policy on paths of runs that always retrieved. A question that occurs twice counts
    once.

    Args:
        source: the name of their experiment.
        reader: the reader of the runs, which may be another than the policy's.
        prompts: the sets of prompts of the runs, which may be others than the policy's.

    Raises:
        UsageError: the policy has no promise, or a measure with a limit is missing.
    """
    promise = promise_of(file)
    paths = distinct(paths)
    followed = follow(file, paths)
    values = measures(paths, followed.stops, followed.asked)
    ends = [path.stops[-1].tokens for path in paths]
    seen = {
        f"{name} after {counted(t, 'retrieval')}": each
        for (name, t), each in samples(followed.seen).items()
    }
    found = _check(
        promise,
        values,
        seen,
        compared="each run's own end, and where the policy would have stopped on it",
        costs=(values["tokens"], np.array(ends, float)),
        freshness=_freshness(file, promise, [path.question.text for path in paths], source),
    )
    other = bool(reader and file.reader) and reader != file.reader
    return found.model_copy(
        update={
            "readers": (file.reader, reader) if other else None,
            "prompts": differing(file.prompts, prompts),
        }
    )


def check_outcomes(file: RouteFile, outcomes: Outcomes, *, source: str = "") -> Check:
    """A router on outcomes of arms. A question that occurs twice counts once.

    Args:
        source: the names of the files, with commas.

    Raises:
        UsageError: the policy has no promise, or the outcomes have other arms or units.
    """
    promise = promise_of(file)
    rows = routers.fitted_to(outcomes.distinct, file)
    questions = [asked(row) for row in rows.rows]
    utilities, costs = file.predict(questions)
    prices = np.array([file.price_of(each.set) for each in questions])
    arms = file.arms_of(utilities, costs, prices)[None]
    found = routers.of_arms(rows, arms, [file.price])
    made = _check(
        promise,
        {name: table[0] for name, table in found.values.items()},
        {f"{n} after 0 retrievals": each for n, each in routers.signals(file, questions).items()},
        compared=f"the outcomes of {file.arms[-1]}, and those of the arms that the router chooses",
        costs=(found.costs[0], rows.costs[:, -1]),
        freshness=_freshness(file, promise, [row.question for row in rows.rows], source),
    )
    return made.model_copy(update={"prompts": differing(file.prompts, rows.prompts)})


class _Freshness(NamedTuple):
    """As in `Check`."""

    fresh: bool
    known: int | None = None


def _freshness(
    file: LearnedFile, promise: Promise, questions: Sequence[str], source: str
) -> _Freshness:
    """By the questions, since an experiment can be renamed or made anew under its name; by the
    names where the file has no marks of questions."""
    if promise.seen:
        seen = {*promise.seen}
        known = sum(mark(question) in seen for question in questions)
        return _Freshness(not known, known)
    learned = str(file.learned.get("source", "")).split(", ")
    return _Freshness(not source or not {*source.split(", ")} & {*learned})


def promise_of(file: LearnedFile) -> Promise:
    """
    Raises:
        UsageError: there is none.
    """
    if file.promise is None:
        raise UsageError(
            "the policy promises nothing: learn it with `hopscope budget fit --guarantee RISK`"
        )
    if not file.promise.kept:
        raise UsageError(
            f"no price kept {file.promise} when the policy was learned: it always retrieves and "
            "promises nothing; learn it from more questions, or allow more"
        )
    return file.promise


def _check(
    promise: Promise,
    values: Mapping[Measure, Floats],
    seen: Mapping[str, Sequence[float]],
    *,
    compared: str,
    costs: tuple[Floats, Floats],
    freshness: _Freshness,
) -> Check:
    for each in promise.risks:
        if each.risk.measure not in values:
            raise UsageError(
                f"{each.risk} cannot be checked: {each.risk.measure} were not measured"
            )
    risks = tuple(_of_risk(each, values[each.risk.measure]) for each in promise.risks)
    verdicts = {each.verdict for each in risks}
    verdict: Verdict = "kept"
    if "broken" in verdicts:
        verdict = BROKEN
    elif "not yet known" in verdicts:
        verdict = "not yet known"
    sketches = {each.name_and_place: each.sketch for each in promise.signals}
    both = [name for name in sketches if len(seen.get(name, ())) >= LEAST]
    signals = [MovedSignal(signal=n, moved=compare(sketches[n], seen[n])) for n in both]
    return Check(
        promise=str(promise),
        verdict=verdict,
        questions=len(values["loss"]),
        calibrated=promise.calibrated,
        compared=compared,
        unit=promise.unit,
        cost=float(costs[0].mean()),
        cost_always=float(costs[1].mean()),
        risks=risks,
        signals=len(signals),
        moved=_moved(signals),
        fresh=freshness.fresh,
        known=freshness.known,
    )


def _of_risk(each: RiskBound, values: Floats) -> RiskCheck:
    risk = each.risk
    if risk.quantile is None:
        caps = {risk.measure: each.cap} if each.cap is not None else {}
        within = span(risk, caps)
        counted, limit = np.minimum(values, within.high), risk.limit
        of = f"mean {risk.measure}"
    else:
        within = Range(0.0, 1.0)
        counted, limit = (values > risk.limit).astype(float), 1 - risk.quantile
        of = f"share above {risk.limit:g} {risk.measure}"
    low, high = betting.bounds(counted, within, level=risk.level)
    verdict: Verdict = "not yet known"
    if high <= limit:
        verdict = "kept"
    elif low > limit:
        verdict = BROKEN
    return RiskCheck(
        risk=str(risk),
        verdict=verdict,
        of=of,
        found=float(counted.mean()),
        low=low,
        high=high,
        limit=round(limit, 12),
        level=risk.level,
        needed=_needed(counted, limit, within, risk.level) if verdict == "not yet known" else None,
    )


def _needed(values: Floats, limit: float, within: Range, level: float) -> int | None:
    mirrored = Range(-within.high, -within.low)
    least = min(
        betting.looks(values, limit, within, level=level, most=MOST),
        betting.looks(-values, -limit, mirrored, level=level, most=MOST),
    )
    return max(least, len(values) + 1) if least < MOST else None


def _moved(signals: Sequence[MovedSignal]) -> tuple[MovedSignal, ...]:
    """By Holm: of m signals, the one with the least p must be within ERROR / m, the next within
    ERROR / (m - 1), and so on until one is not."""
    found: list[MovedSignal] = []
    for place, each in enumerate(sorted(signals, key=lambda signal: signal.moved.p)):
        if each.moved.p > ERROR / (len(signals) - place):
            break
        found.append(each)
    return tuple(sorted(found, key=lambda signal: -signal.moved.distance))
