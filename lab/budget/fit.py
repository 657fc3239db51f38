"""Learn the value of information: what the best continuation gains, and the price that meets a
budget.

Backward over the retrievals, as in the regression of optimal stopping (Longstaff and Schwartz
2001): after the last retrieval there is only stopping; before it, the gain of a path is what
following the policy from the next point on yields, minus what stopping here yields, and trees are
fitted to it. The policy that is followed decides by predictions of trees that did not see the
question (out of bag, Breiman 1996), so that no gain is counted that is hindsight. Bags are drawn of
questions: a tree sees all paths of one, such as those of several experiments, or none.

What the words of a question tell about the retrievals that it needs is a free signal, learned with
the policy (`lab.budget.classify`). Signals are computed in stages, the free ones first. Those of
the next stage are computed if the decision is in doubt: if gain minus price is nearer to 0 than a
margin, which is chosen for the highest utility minus price of all tokens, including those of the
signals.

Decisions depend on the price of a token, the dual variable of the budget. Prices are tried closer
to each other where the mean spend changes much from one to the next. Between two of them lies the
best use of a budget: as in every linear programme with one constraint, it takes at most two prices,
each for a share of the questions. A larger budget never lowers the mean utility on the training
questions.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from math import floor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from hopscope.lab.budget import classify
from hopscope.lab.budget._sklearn import sklearn
from hopscope.lab.budget.frontier import upper_hull
from hopscope.lab.budget.paths import Path
from hopscope.runtime.distinct import numbered
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.counting import counted
from hopscope.tracing.learned.classifier_file import WordModel
from hopscope.tracing.learned.forest import Forest, Tree
from hopscope.tracing.learned.value_file import (
    Bin,
    Head,
    OtherPrice,
    RetrievalPlan,
    StageModel,
    ValueFile,
)
from hopscope.tracing.signals.gathering import NAMES, SIGNALS, STAGES, Stage

Floats = NDArray[np.float64]

INPUTS = (*classify.WORDS, *NAMES)
"""All signals, those of the first stage first."""
LEAST = 30
"""Paths needed to learn a separate head; later retrievals share the last one."""
BINS = 10
GAP = 1 / 12
"""Share of the range of mean tokens; where neighbouring prices differ by more, one between them is
tried."""
CLOSE = 1.02
"""Prices with a smaller ratio count as equal."""
SHARES = 10_000
"""Shares of the questions are multiples of one in so many."""
DOUBTS = (0.2, 0.4, 0.6, 0.8)
"""Shares of the questions in doubt to try, besides none and all."""
ALWAYS = 1e9
"""The margin at which all are in doubt."""


@dataclass(frozen=True)
class Fitting:
    """Settings of learning."""

    _: KW_ONLY
    trees: int = 60
    """Enough that hardly any question is in the bags of all trees."""
    depth: int = 5
    leaf: int = 8
    """Minimum number of questions in a leaf."""
    prices: int = 14
    """Prices to try first, besides 0."""
    between: int = 8
    """At most so many more, where the mean spend changes most."""
    seed: int = 0


class PriceOutcome(NamedTuple):
    """Means at one price over the training questions, by out-of-bag predictions."""

    price: float
    heads: tuple[Head, ...]
    words: WordModel
    utility: float
    tokens: float
    retrievals: float


class Chosen(NamedTuple):
    """What a budget buys best: one price, or two for shares of the questions."""

    cheap: PriceOutcome
    dear: PriceOutcome
    """The same where the budget takes one price."""
    share: float
    """Of the questions that take `dear`."""

    @property
    def utility(self) -> float:
        return self._mean(self.cheap.utility, self.dear.utility)

    @property
    def tokens(self) -> float:
        return self._mean(self.cheap.tokens, self.dear.tokens)

    @property
    def retrievals(self) -> float:
        return self._mean(self.cheap.retrievals, self.dear.retrievals)

    def _mean(self, cheap: float, dear: float) -> float:
        return cheap + self.share * (dear - cheap)


class LearnedPolicy(NamedTuple):
    file: ValueFile
    outcomes: list[PriceOutcome]
    """Of all prices, the lowest first."""


def fit(
    paths: Sequence[Path],
    *,
    workflow: str,
    reader: str,
    utility: str,
    budget: float,
    adapt: Sequence[Path] = (),
    fitting: Fitting | None = None,
    source: str = "",
    cached: float = 1.0,
) -> LearnedPolicy:
    """Learn from paths a policy that spends `budget` tokens per question on average.

    Args:
        adapt: a few paths like those to come, where the others are of another workflow, reader or
            corpus. Trees learn from all alike; prices, budget and figures are for the few.
        cached: what a cached prompt token counts in the paths.

    Raises:
        UsageError: there are too few paths, or the budget does not even pay for stopping at once.
        MissingExtraError: scikit-learn is not installed.
    """
    fitting = fitting or Fitting()
    outcomes = try_prices(paths, fitting, adapt=adapt)
    chosen = choose(outcomes, budget)
    figures: dict[str, JsonValue] = {
        "source": source,
        "questions": len(paths),
        "adapted_to": len(adapt),
        "seed": fitting.seed,
        "utility": round(chosen.utility, 6),
        "tokens": round(chosen.tokens, 3),
        "retrievals": round(chosen.retrievals, 4),
        "estimator": f"out of bag, {fitting.trees} trees",
    }
    its = {"workflow": workflow, "reader": reader, "budget": budget}
    found = mixed_file(chosen, utility=utility, cached=cached, seed=fitting.seed).model_copy(
        update={**its, "plans": plans([*paths, *adapt], fitting), "learned": figures}
    )
    return LearnedPolicy(found, outcomes)


def mixed_file(chosen: Chosen, *, utility: str, cached: float = 1.0, seed: int = 0) -> ValueFile:
    """The policy of a budget, without the names of workflow and reader."""
    found = value_file(chosen.cheap, utility=utility, cached=cached)
    if not chosen.share:
        return found
    dear = OtherPrice(
        share=chosen.share, seed=seed, price=chosen.dear.price, heads=chosen.dear.heads
    )
    return found.model_copy(update={"budget": chosen.tokens, "other": dear})


def value_file(outcome: PriceOutcome, *, utility: str, cached: float = 1.0) -> ValueFile:
    """The policy of one price, without the names of workflow and reader."""
    return ValueFile(
        workflow="",
        reader="",
        utility=utility,
        budget=outcome.tokens,
        price=outcome.price,
        cached=None if cached == 1 else cached,
        signals=INPUTS,
        heads=outcome.heads,
        words=outcome.words,
    )


def plans(paths: Sequence[Path], fitting: Fitting) -> tuple[RetrievalPlan, ...]:
    """Plans of 1, 2, ... retrievals, predicted before the first."""
    rows, _ = classify.told([path for path in paths if path.retrievals])
    inputs, _ = _matrix([path.known[0] for path in rows])
    bags = _Bags.of(rows, fitting)
    found = []
    for wanted in range(1, _depth(paths) + 1):
        stops = [min(wanted, path.retrievals) for path in rows]
        pairs = list(zip(rows, stops, strict=True))
        gain = np.array([p.stops[s].utility - p.stops[0].utility for p, s in pairs])
        cost = np.array([p.stops[s].tokens - p.stops[0].tokens for p, s in pairs], float)
        trees = (_forest(bags.grow(inputs, target)) for target in (gain, cost))
        found.append(RetrievalPlan(gain=next(trees), cost=next(trees)))
    return tuple(found)


def try_prices(
    paths: Sequence[Path], fitting: Fitting, *, adapt: Sequence[Path] = ()
) -> list[PriceOutcome]:
    """Learn a policy at each price, from 0 to one at which nothing is bought.

    Args:
        adapt: a few paths like those to come; see `fit`.

    Raises:
        UsageError: there are too few paths.
    """
    going = [path for path in (*paths, *adapt) if path.retrievals]
    if len(going) < LEAST:
        raise UsageError(
            f"{counted(len(going), 'run with a retrieval is', 'runs with a retrieval are')} too "
            f"few to learn from: {LEAST} are needed"
        )
    like = [path for path in adapt if path.retrievals] or going
    typical = float(np.mean([path.stops[-1].tokens - path.stops[0].tokens for path in like]))
    highest = 4.0 / max(1.0, typical)
    prices = [0.0, *np.geomspace(highest / 1000, highest, fitting.prices)]
    learning = _Learning.of(paths, adapt, fitting)
    found = [learning.at(float(price)) for price in prices]
    for _ in range(fitting.between):
        place = _widest_gap(found)
        if place is None:
            break
        price = (found[place].price * found[place + 1].price) ** 0.5
        found.insert(place + 1, learning.at(price))
    return found


def _widest_gap(outcomes: Sequence[PriceOutcome]) -> int | None:
    """The place of the price after which the mean tokens change most; None if they change little
    everywhere, or at two prices that are close."""
    tokens = [each.tokens for each in outcomes]
    gaps = {
        abs(tokens[place] - tokens[place + 1]): place
        for place, (one, other) in enumerate(pairwise(outcomes))
        if one.price and other.price > CLOSE * one.price
    }
    widest = max(gaps, default=0.0)
    return gaps[widest] if widest > GAP * (max(tokens) - min(tokens)) else None


def choose(outcomes: Sequence[PriceOutcome], budget: float) -> Chosen:
    """The outcome, or the mixture of two, of highest utility within the budget.

    Raises:
        UsageError: no outcome is within the budget.
    """
    at = {(each.tokens, each.utility): each for each in outcomes}
    hull = [at[point] for point in upper_hull([*at])]
    if hull[0].tokens > budget:
        raise UsageError(
            f"a budget of {budget:g} tokens per question is too small: the least that answering "
            f"takes with these signals is {hull[0].tokens:.0f}"
        )
    for cheap, dear in pairwise(hull):
        if budget < dear.tokens:
            share = (budget - cheap.tokens) / (dear.tokens - cheap.tokens)
            return Chosen(cheap, dear, floor(share * SHARES) / SHARES)
    return Chosen(hull[-1], hull[-1], 0.0)


def learn(
    paths: Sequence[Path], price: float, fitting: Fitting, *, adapt: Sequence[Path] = ()
) -> PriceOutcome:
    """One head for each number of retrievals, from the last to the first, at one price. The means
    are those of `adapt`, if there are such paths."""
    return _Learning.of(paths, adapt, fitting).at(price)


class _Learning(NamedTuple):
    paths: list[Path]
    """With the signals from words."""
    words: WordModel
    first: int
    """Of those that figures are for."""
    fitting: Fitting

    @classmethod
    def of(cls, paths: Sequence[Path], adapt: Sequence[Path], fitting: Fitting) -> "_Learning":
        both = [*paths, *adapt]
        return cls(*classify.told(both), len(paths) if adapt else 0, fitting)

    def at(self, price: float) -> PriceOutcome:
        # The results of following the policy after the present retrieval.
        lasts = [(path.stops[-1], path.retrievals) for path in self.paths]
        ends = [_Ends(stop.utility, stop.tokens, count) for stop, count in lasts]
        after = _Ends(*(np.array(column, float) for column in zip(*ends, strict=True)))
        heads: list[Head] = []
        for t in reversed(range(_depth(self.paths))):
            rows = np.array([i for i, path in enumerate(self.paths) if path.retrievals > t])
            going = [self.paths[i] for i in rows]
            here = _Ends(
                np.array([path.stops[t].utility for path in going]),
                np.array([path.stops[t].tokens for path in going], float),
                np.full(len(rows), float(t)),
            )
            head, chosen = _fit_head(going, t, here, after.at(rows), price, self.fitting)
            for column, new in zip(after, chosen, strict=True):
                column[rows] = new
            heads.append(head)
        utility, tokens, retrievals = (float(column[self.first :].mean()) for column in after)
        return PriceOutcome(price, tuple(reversed(heads)), self.words, utility, tokens, retrievals)


class _Ends(NamedTuple):
    """The ends of paths, by path."""

    utility: Any
    tokens: Any
    retrievals: Any

    def at(self, rows: Any) -> "_Ends":
        return _Ends(*(column[rows] for column in self))

    def where(self, condition: Any, other: "_Ends") -> "_Ends":
        """This where the condition holds, else `other`."""
        return _Ends(*(np.where(condition, a, b) for a, b in zip(self, other, strict=True)))

    def worth(self, price: float) -> Any:
        return self.utility - price * self.tokens


def _depth(paths: Sequence[Path]) -> int:
    """The number of retrievals that enough paths exceed; at least 1."""
    depth = 0
    while sum(path.retrievals > depth for path in paths) >= LEAST:
        depth += 1
    return max(1, depth)


def _fit_head(
    paths: Sequence[Path], t: int, here: _Ends, after: _Ends, price: float, fitting: Fitting
) -> tuple[Head, _Ends]:
    """The head after t retrievals, and where it ends the paths by predictions out of bag."""
    inputs, medians = _matrix([path.known[t] for path in paths])
    gain, cost = after.utility - here.utility, after.tokens - here.tokens
    bags = _Bags.of(paths, fitting)
    fitted = [_fit_stage(stage, inputs, gain, cost, bags) for stage in STAGES]
    surplus = [each.gains - price * each.costs for each in fitted]
    chosen = after.where(surplus[-1] > 0, here)
    staged = [fitted[-1].staged]
    for place in reversed(range(len(STAGES) - 1)):
        asked = np.array([path.asked[t].get(STAGES[place + 1], 0) for path in paths], float)
        paid = chosen._replace(tokens=chosen.tokens + asked)
        now = after.where(surplus[place] > 0, here)
        doubt = _doubt(np.abs(surplus[place]), now.worth(price), paid.worth(price))
        chosen = paid.where(np.abs(surplus[place]) < doubt, now)
        staged.insert(0, fitted[place].staged.model_copy(update={"doubt": doubt}))
    return Head(stages=tuple(staged), medians=medians), chosen


def _doubt(distance: Floats, now: Floats, paid: Floats) -> float:
    """The margin at which paying for more signals gains most; of equal ones the smallest."""
    candidates: list[float] = [0.0, *np.quantile(distance, DOUBTS).tolist(), ALWAYS]
    return max(candidates, key=lambda each: float(np.where(distance < each, paid, now).mean()))


class _Fitted(NamedTuple):
    staged: StageModel
    gains: Floats
    """By row, calibrated, by trees that did not see it."""
    costs: Floats


def _fit_stage(stage: Stage, inputs: Any, gain: Floats, cost: Floats, bags: "_Bags") -> _Fitted:
    seen = STAGES[: STAGES.index(stage) + 1]
    known = inputs[:, : len(classify.WORDS) + sum(len(SIGNALS[each]) for each in seen)]
    grown = bags.grow(known, gain)
    # How much is spent varies little: one tree that is too small to remember a question.
    spent = sklearn().DecisionTreeRegressor(
        max_depth=3, min_samples_leaf=2 * bags.fitting.leaf, random_state=bags.fitting.seed
    )
    spent.fit(known, cost)
    raw = grown.unseen
    bins = _bins(raw, gain)
    costs = Forest(start=0.0, trees=(_tree(spent.tree_),))
    calibrated = np.interp(raw, [b.score for b in bins], [b.gain for b in bins])
    staged = StageModel(stage=stage, gain=_forest(grown), cost=costs, bins=bins)
    return _Fitted(staged, calibrated, np.maximum(0.0, spent.predict(known)))


def _matrix(known: Sequence[dict[str, float]]) -> tuple[Any, dict[str, float]]:
    """One row for each; the median replaces unknown signals."""
    present = {name: [row[name] for row in known if name in row] for name in INPUTS}
    medians = {name: float(np.median(values)) for name, values in present.items() if values}
    rows = [[row.get(name, medians.get(name, 0.0)) for name in INPUTS] for row in known]
    return np.array(rows, np.float32), medians


def _bins(score: Floats, gain: Floats) -> tuple[Bin, ...]:
    """Calibration of out-of-bag predictions: mean gains of neighbours, made monotone."""
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


class _Grown(NamedTuple):
    trees: list[Any]
    unseen: Floats
    """The mean prediction of each row by the trees that saw no row of its question."""


class _Bags(NamedTuple):
    """The questions that each tree sees, and how often. Where each has one row, the trees are those
    of scikit-learn's random forest, whose bags are of rows."""

    seeds: list[int]
    """Of the trees."""
    drawn: Any
    """(tree, row)"""
    fitting: Fitting

    @classmethod
    def of(cls, paths: Sequence[Path], fitting: Fitting) -> "_Bags":
        rows = numbered(path.question.text for path in paths)
        questions = len({*rows})
        rng = np.random.RandomState(fitting.seed)
        seeds = [int(rng.randint(np.iinfo(np.int32).max)) for _ in range(fitting.trees)]
        drawn = [_times_drawn(seed, questions)[rows] for seed in seeds]
        return cls(seeds, np.array(drawn), fitting)

    def grow(self, inputs: Any, target: Floats) -> _Grown:
        total, count = np.zeros(len(target)), np.zeros(len(target))
        trees = []
        for seed, drawn in zip(self.seeds, self.drawn, strict=True):
            tree = sklearn().DecisionTreeRegressor(
                max_depth=self.fitting.depth,
                min_samples_leaf=self.fitting.leaf,
                max_features=0.5,
                random_state=seed,
            )
            trees.append(tree.fit(inputs, target, sample_weight=drawn))
            if (unseen := drawn == 0).any():
                total[unseen] += tree.predict(inputs[unseen])
                count += unseen
        return _Grown(trees, total / np.maximum(1, count))


def _times_drawn(seed: int, count: int) -> Floats:
    """How often each of so many is drawn, as many in all."""
    draws = np.random.RandomState(seed).randint(0, count, count, dtype=np.int32)
    return np.bincount(draws, minlength=count).astype(float)


def _forest(grown: _Grown) -> Forest:
    """The learned trees as plain numbers, with equal predictions."""
    trees = tuple(_tree(each.tree_) for each in grown.trees)
    return Forest(start=0.0, rate=1 / len(trees), trees=trees)


def _tree(tree: Any) -> Tree:
    leaves = tree.children_left == -1
    return Tree(
        feature=tuple(np.where(leaves, -1, tree.feature).tolist()),
        threshold=tuple(np.where(leaves, 0.0, tree.threshold).tolist()),
        left=tuple(np.where(leaves, 0, tree.children_left).tolist()),
        right=tuple(np.where(leaves, 0, tree.children_right).tolist()),
        value=tuple(np.round(tree.value[:, 0, 0], 6).tolist()),
    )
