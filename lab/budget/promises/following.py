"""What learned policies do on paths, from the signals that the paths hold; no model is asked."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopscope.lab.budget.paths import Path
from hopscope.lab.budget.promises.choosing import RisksByThreshold
from hopscope.tracing.learned.forest import LEAF, Forest, Tree
from hopscope.tracing.learned.promise import Measure, SignalSample
from hopscope.tracing.learned.value_file import Head, StageModel, ValueFile
from hopscope.tracing.signals.gathering import SIGNALS, STAGES
from hopscope.tracing.statistics.drift import sketch

Floats = NDArray[np.float64]


class Followed(NamedTuple):
    """The end of each path, and the signals that the policy saw on it."""

    stops: NDArray[np.intp]
    asked: Floats
    """Tokens of the signals."""
    seen: tuple[tuple[dict[str, float], ...], ...]
    """By path, before each decision."""


def follow(file: ValueFile, paths: Sequence[Path]) -> Followed:
    """Where a policy stops, and what its signals cost."""
    count = len(paths)
    stops = np.array([path.retrievals for path in paths], np.intp)
    asked = np.zeros(count)
    seen: list[list[dict[str, float]]] = [[] for _ in paths]
    for priced, going in _by_price(file, paths):
        for t in range(int(stops.max(initial=0))):
            going = [i for i in going if paths[i].retrievals > t]
            if not going:
                break
            decided = _decide(priced.head(t), priced, [paths[i] for i in going], t)
            asked[going] += decided.asked
            for i, stages in zip(going, decided.stages, strict=True):
                names = {name for stage in STAGES[:stages] for name in SIGNALS[stage]}
                known = paths[i].known[t]
                seen[i].append({name: known[name] for name in known if name in names})
            stops[[i for i, worth in zip(going, decided.worth, strict=True) if not worth]] = t
            going = [i for i, worth in zip(going, decided.worth, strict=True) if worth]
    return Followed(stops, asked, tuple(map(tuple, seen)))


def _by_price(file: ValueFile, paths: Sequence[Path]) -> Iterator[tuple[ValueFile, list[int]]]:
    """The policy at each of its prices, and the places of the paths that it decides about."""
    if file.always:
        return
    places: dict[bool, list[int]] = {}
    for i, path in enumerate(paths):
        other = file.other is not None and file.other.takes(path.question.text)
        places.setdefault(other, []).append(i)
    for going in places.values():
        yield file.drawn(paths[going[0]].question.text), going


class _Decided(NamedTuple):
    worth: NDArray[np.bool_]
    asked: Floats
    stages: NDArray[np.intp]
    """The number of stages whose signals were computed."""


def _decide(head: Head, file: ValueFile, paths: Sequence[Path], t: int) -> _Decided:
    known = [path.known[t] | file.told(path.question.text) for path in paths]
    inputs = np.array([head.inputs(each, file.signals) for each in known], np.float32)
    worth = np.zeros(len(paths), bool)
    asked = np.zeros(len(paths))
    stages = np.zeros(len(paths), np.intp)
    open_ = np.ones(len(paths), bool)
    for staged in head.stages:
        asked += open_ * np.array([path.asked[t].get(staged.stage, 0) for path in paths], float)
        stages += open_
        gains, costs = _predict(staged, inputs)
        surplus = gains - file.price * costs
        worth = np.where(open_, surplus > 0, worth)
        open_ &= np.abs(surplus) < staged.doubt
        if not open_.any():
            break
    return _Decided(worth, asked, stages)


def _predict(staged: StageModel, inputs: NDArray[np.float32]) -> tuple[Floats, Floats]:
    raw = _of_forest(staged.gain, inputs)
    gains = np.interp(
        raw, [each.score for each in staged.bins], [each.gain for each in staged.bins]
    )
    return gains, np.maximum(0.0, _of_forest(staged.cost, inputs))


def _of_forest(forest: Forest, inputs: NDArray[np.float32]) -> Floats:
    total = np.zeros(len(inputs))
    for tree in forest.trees:
        total += _of_tree(tree, inputs)
    return forest.start + forest.rate * total


def _of_tree(tree: Tree, inputs: NDArray[np.float32]) -> Floats:
    feature, threshold = np.array(tree.feature), np.array(tree.threshold, np.float32)
    left, right = np.array(tree.left), np.array(tree.right)
    nodes = np.zeros(len(inputs), np.intp)
    rows = np.arange(len(inputs))
    while (inner := feature[nodes] != LEAF).any():
        at = nodes[inner]
        below = inputs[rows[inner], feature[at]] <= threshold[at]
        nodes[inner] = np.where(below, left[at], right[at])
    return np.array(tree.value)[nodes]


def measures(
    paths: Sequence[Path], stops: NDArray[np.intp], asked: Floats
) -> dict[Measure, Floats]:
    """The loss, tokens, steps and, where all are known, seconds of ending paths at stops.

    The seconds of signals are taken in proportion to their tokens.
    """
    ends = [path.stops[stop] for path, stop in zip(paths, stops, strict=True)]
    always = [path.stops[-1] for path in paths]
    found: dict[Measure, Floats] = {
        "loss": np.array([a.utility - e.utility for a, e in zip(always, ends, strict=True)]),
        "tokens": np.array([each.tokens for each in ends], float) + asked,
        "steps": stops.astype(float),
    }
    timed = [(e.seconds, a.seconds) for e, a in zip(ends, always, strict=True)]
    if all(end is not None and whole is not None for end, whole in timed):
        own = np.array([end for end, _ in timed], float)
        rates = [(a.seconds or 0.0) / max(1, a.tokens) for a in always]
        found["seconds"] = own + asked * rates
    return found


def by_threshold(files: Sequence[ValueFile], paths: Sequence[Path]) -> RisksByThreshold:
    """What policies at several prices do on the same paths."""
    rows = []
    for file in files:
        followed = follow(file, paths)
        rows.append(measures(paths, followed.stops, followed.asked))
    tables = {name: np.vstack([row[name] for row in rows]) for name in rows[0]}
    return RisksByThreshold(tuple(file.price for file in files), tables, tables["tokens"])


def samples(seen: Sequence[Sequence[dict[str, float]]]) -> dict[tuple[str, int], list[float]]:
    """The values of each signal after each number of retrievals, one a path."""
    found: dict[tuple[str, int], list[float]] = {}
    for decisions in seen:
        for t, known in enumerate(decisions):
            for name, value in known.items():
                found.setdefault((name, t), []).append(value)
    return found


LEAST = 20
"""Signals with fewer values are not kept."""


def sketches(seen: Sequence[Sequence[dict[str, float]]]) -> tuple[SignalSample, ...]:
    return tuple(
        SignalSample(name=name, retrievals=t, sketch=sketch(values))
        for (name, t), values in samples(seen).items()
        if len(values) >= LEAST and name != "retrievals"
    )
