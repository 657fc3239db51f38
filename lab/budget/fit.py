"""Learn the value of information: what the best continuation gains, and the price that meets a
budget.

Backward over the retrievals, as in the regression of optimal stopping (Longstaff and Schwartz
2001): after the last retrieval there is only stopping; before it, the gain of a path is what
following the policy from the next point on yields, minus what stopping here yields, and trees are
fitted to it. The policy that is followed decides by predictions on questions left out of the fit,
so that no gain is counted that is hindsight. Its decisions depend on the price of a token, the dual
variable of the budget: of the prices tried, the one with the highest mean utility whose mean spend
is within the budget is taken, so that a larger budget never does worse on the questions learned
from.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from hopscope.lab.budget._sklearn import sklearn
from hopscope.lab.budget.paths import Path
from hopscope.runtime.errors import UsageError
from hopscope.tracing.forest import Forest, Tree
from hopscope.tracing.policies._value_file import Bin, Head, Plan, ValueFile
from hopscope.tracing.signals import NAMES

if TYPE_CHECKING:
    from sklearn.ensemble import GradientBoostingRegressor

Floats = NDArray[np.float64]

LEAST = 30
"""Paths that must be left to learn a head of its own; later retrievals share the last one."""
BINS = 10


@dataclass(frozen=True)
class Fitting:
    """How to learn."""

    _: KW_ONLY
    trees: int = 60
    depth: int = 3
    rate: float = 0.1
    leaf: int = 20
    """Questions in a leaf at least."""
    folds: int = 5
    prices: int = 14
    """Prices to try, besides 0."""
    seed: int = 0


class Outcome(NamedTuple):
    """What a price comes to on the questions learned from, by predictions that left them out."""

    price: float
    heads: tuple[Head, ...]
    utility: float
    tokens: float
    retrievals: float


class Learned(NamedTuple):
    file: ValueFile
    outcomes: list[Outcome]
    """Of all prices, the lowest first."""


def fit(
    paths: Sequence[Path],
    *,
    workflow: str,
    reader: str,
    utility: str,
    budget: float,
    fitting: Fitting | None = None,
    source: str = "",
) -> Learned:
    """Learn from paths a policy that spends `budget` tokens per question on average.

    Raises:
        UsageError: there are too few paths, or the budget does not even pay for stopping at once.
        MissingExtra: scikit-learn is not installed.
    """
    fitting = fitting or Fitting()
    outcomes = try_prices(paths, fitting)
    chosen = choose(outcomes, budget)
    figures: dict[str, JsonValue] = {
        "source": source,
        "questions": len(paths),
        "seed": fitting.seed,
        "utility": round(chosen.utility, 6),
        "tokens": round(chosen.tokens, 3),
        "retrievals": round(chosen.retrievals, 4),
        "estimator": f"{fitting.folds}-fold, questions left out",
    }
    its = {"workflow": workflow, "reader": reader, "budget": budget}
    found = value_file(chosen, utility=utility).model_copy(
        update={**its, "plans": _plans(paths, fitting), "learned": figures}
    )
    return Learned(found, outcomes)


def value_file(outcome: Outcome, *, utility: str) -> ValueFile:
    """The policy of one price, without saying whose it is."""
    return ValueFile(
        workflow="",
        reader="",
        utility=utility,
        budget=outcome.tokens,
        price=outcome.price,
        signals=NAMES,
        heads=outcome.heads,
    )


def _plans(paths: Sequence[Path], fitting: Fitting) -> tuple[Plan, ...]:
    """What 1, 2, ... retrievals bring, seen from before the first."""
    rows = [path for path in paths if path.retrievals]
    inputs, _ = _matrix([path.known[0] for path in rows])
    found = []
    for wanted in range(1, _depth(paths) + 1):
        stops = [min(wanted, path.retrievals) for path in rows]
        pairs = list(zip(rows, stops, strict=True))
        gain = np.array([p.stops[s].utility - p.stops[0].utility for p, s in pairs])
        cost = np.array([p.spent(s) - p.spent(0) for p, s in pairs], float)
        found.append(
            Plan(
                gain=_forest(_grow(inputs, gain, fitting)),
                cost=_forest(_grow(inputs, cost, _shallow(fitting))),
            )
        )
    return tuple(found)


def try_prices(paths: Sequence[Path], fitting: Fitting) -> list[Outcome]:
    """Learn for prices from 0 to where nothing is bought.

    Raises:
        UsageError: there are too few paths.
    """
    going = [path for path in paths if path.retrievals]
    if len(going) < max(LEAST, fitting.folds):
        raise UsageError(
            f"{len(going)} runs with a retrieval are too few to learn from: "
            f"{max(LEAST, fitting.folds)} are needed"
        )
    typical = float(np.mean([path.spent(path.retrievals) - path.spent(0) for path in going]))
    highest = 4.0 / max(1.0, typical)
    prices = [0.0, *np.geomspace(highest / 1000, highest, fitting.prices)]
    return [learn(paths, float(price), fitting) for price in prices]


def choose(outcomes: Sequence[Outcome], budget: float) -> Outcome:
    """The best that the budget pays for.

    Raises:
        UsageError: it pays for none.
    """
    within = [each for each in outcomes if each.tokens <= budget]
    if not within:
        least = min(each.tokens for each in outcomes)
        raise UsageError(
            f"a budget of {budget:g} tokens per question is too small: the least that answering "
            f"takes with these signals is {least:.0f}"
        )
    return max(within, key=lambda each: (each.utility, -each.tokens))


def learn(paths: Sequence[Path], price: float, fitting: Fitting) -> Outcome:
    """One head for each number of retrievals, from the last to the first, at one price."""
    # What following the policy from after the present retrieval on gives.
    utility = np.array([path.stops[-1].utility for path in paths])
    tokens = np.array([path.spent(path.retrievals) for path in paths], float)
    stop = np.array([path.retrievals for path in paths])
    heads: list[Head] = []
    for t in reversed(range(_depth(paths))):
        rows = [i for i, path in enumerate(paths) if path.retrievals > t]
        here = np.array([paths[i].stops[t].utility for i in rows])
        so_far = np.array([paths[i].spent(t) for i in rows], float)
        known = [paths[i].known[t] for i in rows]
        fitted = _fit_head(known, utility[rows] - here, tokens[rows] - so_far, fitting)
        goes_on = fitted.gains > price * fitted.costs
        utility[rows] = np.where(goes_on, utility[rows], here)
        tokens[rows] = np.where(goes_on, tokens[rows], so_far)
        stop[rows] = np.where(goes_on, stop[rows], t)
        heads.append(fitted.head)
    return Outcome(
        price,
        tuple(reversed(heads)),
        float(utility.mean()),
        float(tokens.mean()),
        float(stop.mean()),
    )


def _depth(paths: Sequence[Path]) -> int:
    """Numbers of retrievals that enough paths go beyond; at least one."""
    depth = 0
    while sum(path.retrievals > depth for path in paths) >= LEAST:
        depth += 1
    return max(1, depth)


class _Fitted(NamedTuple):
    head: Head
    gains: Floats
    """By row, calibrated, by trees that did not see it."""
    costs: Floats


def _fit_head(
    known: Sequence[dict[str, float]], gain: Floats, cost: Floats, fitting: Fitting
) -> _Fitted:
    inputs, medians = _matrix(known)
    raw, costs = np.zeros(len(known)), np.zeros(len(known))
    folds = np.random.default_rng(fitting.seed).permutation(len(known)) % fitting.folds
    for fold in range(fitting.folds):
        left_out = folds == fold
        raw[left_out] = _grow(inputs[~left_out], gain[~left_out], fitting).predict(inputs[left_out])
        simple = _grow(inputs[~left_out], cost[~left_out], _shallow(fitting))
        costs[left_out] = simple.predict(inputs[left_out])
    bins = _bins(raw, gain)
    head = Head(
        gain=_forest(_grow(inputs, gain, fitting)),
        cost=_forest(_grow(inputs, cost, _shallow(fitting))),
        bins=bins,
        medians=medians,
    )
    gains = np.interp(raw, [b.score for b in bins], [b.gain for b in bins])
    return _Fitted(head, gains, np.maximum(0.0, costs))


def _matrix(known: Sequence[dict[str, float]]) -> tuple[Any, dict[str, float]]:
    """One row for each; what is not known is replaced by the median of what is."""
    present = {name: [row[name] for row in known if name in row] for name in NAMES}
    medians = {name: float(np.median(values)) for name, values in present.items() if values}
    rows = [[row.get(name, medians.get(name, 0.0)) for name in NAMES] for row in known]
    return np.array(rows, np.float32), medians


def _shallow(fitting: Fitting) -> Fitting:
    """For costs, which vary less."""
    return replace(fitting, trees=max(1, fitting.trees // 3), depth=2)


def _bins(score: Floats, gain: Floats) -> tuple[Bin, ...]:
    """What predictions came to on what they had not seen: means of neighbours, made monotone."""
    isotonic = sklearn().IsotonicRegression(out_of_bounds="clip")
    order = np.argsort(score, kind="stable")
    groups = np.array_split(order, max(1, min(BINS, len(order) // 20)))
    means = np.array([gain[g].mean() for g in groups])
    sizes = np.array([len(g) for g in groups], float)
    monotone = isotonic.fit_transform(np.arange(len(groups)), means, sample_weight=sizes)
    found: list[Bin] = []
    for group, mean in zip(groups, monotone, strict=True):
        centre = float(score[group].mean())
        half = 1.96 * float(gain[group].std(ddof=1)) / len(group) ** 0.5 if len(group) > 1 else 1.0
        if not found or centre > found[-1].score:
            found.append(Bin(score=centre, gain=mean, low=mean - half, high=mean + half))
    return tuple(found)


def _grow(inputs: Any, target: Floats, fitting: Fitting) -> "GradientBoostingRegressor":
    model = sklearn().GradientBoostingRegressor(
        n_estimators=fitting.trees,
        max_depth=fitting.depth,
        learning_rate=fitting.rate,
        min_samples_leaf=fitting.leaf,
        subsample=0.7,
        random_state=fitting.seed,
    )
    return model.fit(inputs, target)


def _forest(model: "GradientBoostingRegressor") -> Forest:
    """The learned trees as plain numbers; predicts the same."""
    return Forest(
        start=float(model.init_.constant_[0, 0]),
        rate=float(model.learning_rate),
        trees=tuple(_tree(each.tree_) for each in model.estimators_[:, 0]),
    )


def _tree(tree: Any) -> Tree:
    leaves = tree.children_left == -1
    return Tree(
        feature=tuple(np.where(leaves, -1, tree.feature).tolist()),
        threshold=tuple(np.where(leaves, 0.0, tree.threshold).tolist()),
        left=tuple(np.where(leaves, 0, tree.children_left).tolist()),
        right=tuple(np.where(leaves, 0, tree.children_right).tolist()),
        value=tuple(np.round(tree.value[:, 0, 0], 9).tolist()),
    )
