"""Learn a policy of least cost that keeps limits of risk with a level of confidence.

Half of the questions, by a seeded draw, teach the policies, one for each price; the other half is
for the choice among them (`choosing`). Neither half sees the other. Where others teach as well, of
another workflow, reader or corpus, both halves are of the questions like those to come: a promise
holds for questions like those that it was calibrated on. None of these is among the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hopscope.lab.budget import fit
from hopscope.lab.budget.fit import Fitting
from hopscope.lab.budget.learning import LearnedPolicy
from hopscope.lab.budget.paths import Path, distinct
from hopscope.lab.budget.promises import choosing
from hopscope.lab.budget.promises.choosing import RisksByThreshold
from hopscope.lab.budget.promises.following import by_threshold, follow, measures, sketches
from hopscope.lab.budget.stored import Walks
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.counting import counted
from hopscope.tracing.learned.promise import Measure, Promise, Risk, SignalSample, mark
from hopscope.tracing.learned.value_file import ValueFile

CAP = 2.0
"""The cap of tokens and steps, in multiples of the most that a question of the learning half
took."""
SHARE = 0.5
"""Of the questions, for learning."""
FEW = 20
"""Questions to adapt to that a promise needs at least."""


class Halves(NamedTuple):
    """Places of questions, shuffled."""

    learning: list[int]
    calibration: list[int]


def split(count: int, seed: int) -> Halves:
    places = np.random.default_rng(seed).permutation(count).tolist()
    first = round(count * SHARE)
    return Halves(places[:first], places[first:])


def learn_promised(
    walks: Walks,
    risks: Sequence[Risk],
    *,
    others: Sequence[Walks] = (),
    utility: str = "correctness",
    seed: int = 0,
    source: str = "",
) -> LearnedPolicy:
    """Learn a `value` policy with a promise from the paths of experiments. A question that occurs
    in several counts once: it must not be on both sides, and is no more evidence.

    Args:
        others: paths of other workflows, readers or corpora to learn from as well, without the
            questions that are in `walks`.
        utility: what the paths were measured by.
        source: the experiments' names, kept in the file.

    Raises:
        UsageError, MissingExtraError: as `learn`.
    """
    paths = distinct([each.path for each in walks.paths])
    own = {path.question.text for path in paths}
    foreign = [each.path for other in others for each in other.paths]
    foreign = [path for path in foreign if path.question.text not in own]
    found = learn(
        paths,
        risks,
        others=foreign,
        workflow=walks.workflow,
        reader=walks.reader.name,
        utility=utility,
        fitting=Fitting(seed=seed),
        source=source,
        cached=walks.cached,
    )
    found = found.model_copy(update={"prompts": walks.prompts})
    return LearnedPolicy("value", found, len(foreign) + len(paths))


def learn(
    paths: Sequence[Path],
    risks: Sequence[Risk],
    *,
    others: Sequence[Path] = (),
    workflow: str,
    reader: str,
    utility: str,
    fitting: Fitting | None = None,
    source: str = "",
    cached: float = 1.0,
) -> ValueFile:
    """Learn from paths the cheapest policy that keeps all limits; one that always retrieves, if no
    price does.

    Args:
        paths: like those to come.
        others: to learn from as well, of other questions.
        cached: what a cached prompt token counts in the paths.

    Raises:
        UsageError: there are too few paths, or seconds have a limit and were not measured.
        MissingExtraError: scikit-learn is not installed.
    """
    fitting = fitting or Fitting()
    halves = split(len(paths), fitting.seed)
    own = [paths[i] for i in halves.learning]
    rest = [paths[i] for i in halves.calibration]
    if others:
        check_enough(len(paths))
    elif sum(path.retrievals > 0 for path in own) < fit.LEAST:
        raise UsageError(
            f"{counted(len(paths), 'run is', 'runs are')} too few for a promise: it learns from "
            f"one half, in which {fit.LEAST} must have a retrieval, and is tested on the other"
        )
    check_measured(risks, measures(paths, np.zeros(len(paths), np.intp), np.zeros(len(paths))))
    files = [
        fit.value_file(each, utility=utility, cached=cached)
        for each in fit.try_prices(others or own, fitting, adapt=own if others else ())
    ]
    learned, found = by_threshold(files, own), by_threshold(files, rest)
    place, promise = promised(
        learned,
        found,
        risks,
        always=always(rest, found),
        seed=fitting.seed,
    )
    kept = place is not None
    chosen = files[place or 0].model_copy(update={"always": None if kept else True})
    signals = sketches(follow(files[place or 0], rest).seen)
    seen = marks(path.question.text for path in (*others, *paths))
    return chosen.model_copy(
        update={
            "workflow": workflow,
            "reader": reader,
            "budget": promise.cost,
            "plans": fit.plans([*others, *own], fitting),
            "promise": promise.model_copy(update={"signals": signals, "seen": seen}),
            "learned": {
                "source": source,
                "questions": len(others or own),
                "adapted_to": len(own) if others else 0,
                "seed": fitting.seed,
                "estimator": f"{fitting.trees} trees; the promise is by {len(rest)} others",
            },
        }
    )


def check_enough(count: int) -> None:
    """
    Raises:
        UsageError: there are too few questions like those to come for two halves.
    """
    if count < FEW:
        raise UsageError(
            f"{counted(count, 'question to adapt to is', 'questions to adapt to are')} too few for "
            f"a promise, which takes half of them to be calibrated on: give {FEW} at least, and "
            "some hundreds for a tight limit"
        )


def check_measured(risks: Sequence[Risk], measured: Iterable[str]) -> None:
    """
    Raises:
        UsageError: a measure with a limit was not measured.
    """
    known = tuple(measured)
    for risk in risks:
        if risk.measure not in known:
            raise UsageError(
                f"--guarantee {risk}: {risk.measure} were not measured; there are "
                f"{', '.join(known)}"
            )


def always(paths: Sequence[Path], like: RisksByThreshold) -> RisksByThreshold:
    """Always retrieving, with the same measures."""
    stops = np.array([path.retrievals for path in paths], np.intp)
    values = measures(paths, stops, np.zeros(len(paths)))
    rows = {name: values[name][None] for name in like.values}
    return RisksByThreshold((0.0,), rows, rows["tokens"])


def marks(questions: Iterable[str]) -> tuple[str, ...]:
    """Each once, in no order that tells which of them teach."""
    return tuple(sorted({mark(each) for each in questions}))


class Promised(NamedTuple):
    place: int | None
    """The threshold; None if it always retrieves."""
    promise: Promise


def promised(
    learned: RisksByThreshold,
    found: RisksByThreshold,
    risks: Sequence[Risk],
    *,
    always: RisksByThreshold,
    seed: int,
    unit: str = "tokens",
    signals: Sequence[SignalSample] = (),
) -> Promised:
    """Choose a threshold, and say what is promised.

    Args:
        learned: on the questions that the policies have learned from; for the order of tests.
        found: on other questions, in random order.
        always: always retrieving, on the questions of `found`.
    """
    caps = ceilings(learned, risks)
    order = choosing.sequence(learned, risks, caps)
    chosen = choosing.choose(found, risks, order, caps)
    kept = chosen.place is not None
    table = found if kept else always
    row = chosen.place or 0
    needed = None if kept else choosing.needed(found, risks, order[0], caps)
    bounds = tuple(choosing.bound(table.values[r.measure][row], r, caps) for r in risks)
    return Promised(
        chosen.place,
        Promise(
            kept=kept,
            risks=bounds,
            method=choosing.METHOD,
            threshold=found.thresholds[row] if kept else None,
            tried=len(found.thresholds),
            calibrated=found.costs.shape[1],
            seed=seed,
            unit=unit,
            cost=float(table.costs[row].mean()),
            cost_always=float(always.costs[0].mean()),
            needed=needed,
            signals=tuple(signals),
        ),
    )


def ceilings(learned: RisksByThreshold, risks: Sequence[Risk]) -> Mapping[Measure, float]:
    """The caps of measures whose mean has a limit; see `RiskBound.cap`."""
    return {
        r.measure: max(r.limit, CAP * float(learned.values[r.measure].max()))
        for r in risks
        if r.measure != "loss" and r.quantile is None
    }
