"""A router learned where the right arm is known: the draft's words tell which one is right."""

from functools import cache

import numpy as np
import pytest

from hopscope.lab.budget.outcomes import OutcomeRow, Outcomes
from hopscope.lab.budget.routing import budgets
from hopscope.lab.budget.routing.fitting import Fitting, Learned, _folds, asked, learn
from hopscope.lab.budget.routing.judging import compare, judge
from hopscope.runtime.errors import UsageError
from hopscope.tracing.learned.route_file import Asked, RouteFile

pytest.importorskip("sklearn")

QUICK = Fitting(trees=12, leaf=3, prices=20)
ARMS = ("none", "one", "ircot")
DRAFTS = ("Ina Dorn", "unknown", "It is not known, there is no information about that")


def row(number: int, *, name: str = "a", draft: bool = True) -> OutcomeRow:
    """The draft is right, or hedges and one retrieval is, or many are; every tenth is hopeless."""
    right = number % 3
    scores = {arm: float(place >= right) for place, arm in enumerate(ARMS)}
    return OutcomeRow(
        question=f"Who founded the town number {number}?",
        set=name,
        scores=scores if number % 10 else dict.fromkeys(ARMS, 0.0),
        costs={"steps": {"none": 0.0, "one": 1.0, "ircot": 3.0 if name == "a" else 4.0}},
        draft=DRAFTS[right] if draft else None,
    )


def outcomes(first: int, count: int, **how: bool) -> Outcomes:
    rows = tuple(row(first + n, name="ab"[n // 3 % 2], **how) for n in range(count))
    return Outcomes(rows=rows, arms=ARMS, unit="steps")


@cache
def learned() -> Learned:
    return learn(outcomes(0, 240), fitting=QUICK, source="here")


def test_the_router_takes_the_cheapest_arm_that_is_right() -> None:
    made = judge(outcomes(1000, 120), learned().file, resamples=100)
    assert made.pooled.shipped.accuracy == pytest.approx(made.pooled.oracle.accuracy, abs=0.02)
    assert made.pooled.shipped.cost < 2
    assert made.pooled.shipped.difference_low > 0.1
    assert made.levels == {"draft": 120}
    assert [each.set for each in made.sets] == ["a", "b"]


def test_the_mixture_of_fixed_arms_at_equal_cost() -> None:
    """Of the three arms, all lie on a line of cost and accuracy but for the sets' costs."""
    test = outcomes(1000, 120)
    made = judge(test, learned().file, at={"a": 2.0}, resamples=100)
    [point] = made.sets[0].at
    none, one, ircot = (arm.accuracy for arm in made.sets[0].arms)
    assert point.cost == pytest.approx(2.0)
    assert point.fixed == pytest.approx(max((one + ircot) / 2, none + (ircot - none) * 2 / 3))
    assert point.difference == pytest.approx(point.accuracy - point.fixed)
    assert point.difference_low <= point.difference <= point.difference_high
    inner = made.pooled.within_sets
    assert inner is not None
    assert inner.cost == pytest.approx((2.0 + made.sets[1].shipped.cost) / 2)


def test_the_oracle_takes_the_best_answer_even_if_little_better_and_dear() -> None:
    rows = tuple(
        OutcomeRow(
            question=f"Who founded town {n}?",
            scores={"none": 0.5, "one": 0.501, "ircot": 0.501},
            costs={"tokens": {"none": 100.0, "one": 5000.0, "ircot": 9000.0}},
        )
        for n in range(4)
    )
    given = Outcomes(rows=rows, arms=ARMS, unit="tokens")
    found = compare(given, given.scores, given.costs, shipped=[0.0] * 4, resamples=100)
    assert (found.pooled.oracle.accuracy, found.pooled.oracle.cost) == (0.501, 5000)


def test_a_file_predicts_as_it_was_learned() -> None:
    file = RouteFile.model_validate_json(learned().file.model_dump_json())
    rows = [asked(each) for each in outcomes(0, 30).rows]
    for mine, theirs in zip(file.predict(rows), learned().file.predict(rows), strict=True):
        assert mine == pytest.approx(theirs)
    utilities, _ = file.predict(rows)
    assert utilities.min() >= 0
    assert utilities.max() <= 1


def test_prices_spend_the_budget() -> None:
    """Of the training questions, out of fold, and of each set where sets have their own."""
    rows = outcomes(0, 240)
    within = learn(rows, budgets={"": 1.0, "b": 0.5}, fitting=QUICK)
    found = within.file
    assert found.learned["steps"] == pytest.approx(1.0, abs=0.1)
    assert set(found.prices) == {"b"}
    assert found.prices["b"] > found.price
    assert found.price_of("never seen") == found.price
    with pytest.raises(UsageError, match="no row is of the set c"):
        learn(rows, budgets={"c": 1.0}, fitting=QUICK)


def test_questions_without_draft_or_set_take_what_there_is() -> None:
    file = learned().file
    assert file.route(Asked("Who founded the town number 1?")).level == "question"
    assert file.route(Asked("Who founded it?", "unheard of", "Ina Dorn")).level == "draft"
    poor = learn(outcomes(0, 60, draft=False), fitting=QUICK).file
    assert [model.level for model in poor.models] == ["question"]
    made = judge(outcomes(1000, 60), poor, resamples=100)
    assert made.levels == {"question": 60}


def test_costs_that_vary_within_a_set_are_predicted() -> None:
    rows = tuple(
        row(n).model_copy(
            update={"costs": {"steps": {"none": 0.0, "one": 1.0, "ircot": 2.0 + 6 * (n % 3 == 2)}}}
        )
        for n in range(240)
    )
    file = learn(Outcomes(rows=rows, arms=ARMS, unit="steps"), fitting=QUICK).file
    _, costs = file.predict([Asked("Who?", "a", DRAFTS[0]), Asked("Who?", "a", DRAFTS[2])])
    assert costs[0, 2] < 4 < costs[1, 2]
    assert np.abs(costs[:, 0]).max() == 0


def test_a_few_rows_of_another_kind_turn_the_router() -> None:
    """There, drafts are right where they hedge, so that a search brings nothing."""
    few = tuple(
        row(n, name="c").model_copy(update={"scores": dict.fromkeys(ARMS, 1.0)}) for n in range(40)
    )
    there = Outcomes(rows=few, arms=ARMS, unit="steps")
    plain = judge(there, learned().file, resamples=100).pooled.shipped
    assert plain.cost > 0.5
    made = learn(outcomes(0, 240), adapt=there, fitting=QUICK)
    assert made.file.learned["adapted_to"] == 40
    assert judge(there, made.file, resamples=100).pooled.shipped.cost < plain.cost / 2
    with pytest.raises(UsageError, match="no row is of the set a; there are c"):
        learn(outcomes(0, 240), adapt=there, budgets={"a": 1.0}, fitting=QUICK)
    two = there.model_copy(update={"arms": ARMS[:2]})
    with pytest.raises(UsageError, match="rows to adapt to are of none, one by steps"):
        learn(outcomes(0, 240), adapt=two, fitting=QUICK)


def test_what_cannot_be_learned_or_judged() -> None:
    with pytest.raises(UsageError, match="9 rows are too few"):
        learn(outcomes(0, 9), fitting=QUICK)
    alone = outcomes(0, 60).model_copy(update={"arms": ("one",)})
    with pytest.raises(UsageError, match="needs two arms"):
        learn(alone, fitting=QUICK)
    with pytest.raises(UsageError, match="chooses among none, one, ircot by steps"):
        judge(alone, learned().file)
    with pytest.raises(UsageError, match="no row is of the set c"):
        judge(outcomes(0, 60), learned().file, at={"c": 1.0})


@pytest.mark.parametrize(
    "text", ["2", "tokens=2", "steps=x", "steps=-1", "a:=1", "steps=1,steps=2"]
)
def test_budgets_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--budget"):
        budgets.parse(text, unit="steps", option="--budget")


def test_budgets_of_sets() -> None:
    found = budgets.parse("steps=2.5, b:steps=.5", unit="steps", option="--budget")
    assert found == {"": 2.5, "b": 0.5}
    assert budgets.of_each(found, ["a", "b"]) == {"a": 2.5, "b": 0.5}
    with pytest.raises(UsageError, match="--budget-per set needs"):
        budgets.of_each({}, ["a"])


def test_rows_of_one_question_are_in_one_fold() -> None:
    """Else a prediction out of fold is by a router that has seen the question, in another set or
    among the rows to adapt to."""
    once = outcomes(0, 60)
    elsewhere = [row.model_copy(update={"set": "c"}) for row in once.rows]
    folds = _folds(once, Fitting())
    assert [(folds == fold).sum() for fold in range(5)] == [12] * 5
    twice = once.model_copy(update={"rows": (*once.rows, *elsewhere)})
    assert _folds(twice, Fitting()).tolist() == [*folds, *folds]
