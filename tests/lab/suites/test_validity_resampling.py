"""Correlations and AUROC over pairs: by hand, against scipy and scikit-learn, and by question."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, pearsonr
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score

from hopscope.lab.suites.resampling import Pairs


def drawn(count: int = 60, questions: int = 20) -> tuple[Pairs, list[float]]:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, count).astype(float)
    scores = (truth + rng.normal(0, 0.8, count)).round(1)
    return Pairs(truth.tolist(), [i % questions for i in range(count)], seed=3), scores.tolist()


def test_a_correlation_is_that_of_scipy() -> None:
    pairs, scores = drawn()
    expected = pearsonr(scores, pairs.truth)
    assert pairs.pearson(scores).value == pytest.approx(expected.statistic)
    t, p = pairs.test(scores)
    assert p.value == pytest.approx(expected.pvalue)
    assert (t.n, p.n) == (60, 60)


def test_the_paper_s_test_of_a_correlation() -> None:
    """r = .5 over 20 pairs has t = 2.449490 and p = .024770."""
    truth = [0.0, 1.0] * 10
    rest = [1.0, 1.0, -1.0, -1.0] * 5
    # Two series without correlation and of one length: r is the cosine of the mixture.
    scores = [0.5 * (2 * y - 1) + 0.75**0.5 * z for y, z in zip(truth, rest, strict=True)]
    pairs = Pairs(truth, list(range(20)), seed=0)
    t, p = pairs.test(scores)
    assert pairs.pearson(scores).value == pytest.approx(0.5)
    assert t.value == pytest.approx(2.449490, abs=1e-6)
    assert p.value == pytest.approx(0.024770, abs=1e-6)


def test_an_auroc_is_that_of_scikit_learn_ties_included() -> None:
    pairs, scores = drawn()
    expected = roc_auc_score(pairs.truth, scores)
    assert pairs.auroc(scores).value == pytest.approx(expected)
    by_hand = Pairs([1.0, 0.0, 0.0, 1.0], [0, 0, 1, 1], seed=0)
    # Of four comparisons two are won and one is tied.
    assert by_hand.auroc([2.0, 1.0, 2.0, 1.5]).value == pytest.approx(0.625)


@pytest.mark.parametrize("kind", ["pearson", "auroc"])
def test_intervals_are_those_of_whole_questions_drawn_again(kind: str) -> None:
    """The same draws, made into lists of pairs one by one."""
    whole, scores = drawn()
    pairs = replace(whole, resamples=200)
    found = getattr(pairs, kind)(scores)
    rng = np.random.default_rng(3)
    counts = rng.multinomial(20, np.full(20, 1 / 20), size=pairs.resamples)
    truth, given, question = map(np.array, (pairs.truth, scores, pairs.question))
    values: list[float] = []
    for count in counts:
        chosen = np.repeat(np.arange(60), count[question])
        if kind == "pearson":
            values.append(pearsonr(given[chosen], truth[chosen]).statistic)
        else:
            values.append(roc_auc_score(truth[chosen], given[chosen]))
    # Bias-corrected, and expanded from the normal's 1.96 to Student's for 20 questions.
    bias = norm.ppf(
        (sum(v < found.value for v in values) + sum(v <= found.value for v in values)) / 400
    )
    reach = (20 / 19) ** 0.5 * student.ppf(0.975, 19)
    low, high = np.quantile(values, norm.cdf([2 * bias - reach, 2 * bias + reach]))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.n == 60
    assert "over questions" in found.estimator


def test_a_perfect_correlation_has_an_interval() -> None:
    """In 145 of 600 draws of an r of .98 all pairs agree, and there was no interval: with 50
    questions 7.1 % of them could disagree unseen."""
    truth = [0.0, 1.0] * 25
    found = Pairs(truth, list(range(50)), seed=0).pearson([2 * y + 1 for y in truth])
    assert (found.value, found.high) == (pytest.approx(1), 1)
    assert found.low == pytest.approx(1 - 2 * (1 - 0.025 ** (1 / 50)))
    assert "unseen disagreement" in found.estimator


def test_a_question_asked_twice_tells_nothing_new() -> None:
    pairs, scores = drawn()
    twice = Pairs([*pairs.truth, *pairs.truth], [*pairs.question, *pairs.question], seed=3)
    once, again = pairs.pearson(scores), twice.pearson([*scores, *scores])
    assert (again.value, again.low, again.high) == pytest.approx((once.value, once.low, once.high))


def test_a_lead_is_paired() -> None:
    pairs, scores = drawn()
    noise = np.random.default_rng(9).normal(size=60).tolist()
    lead = pairs.pearson_above(scores, noise)
    apart = (pairs.pearson(scores).value or 0) - (pairs.pearson(noise).value or 0)
    assert lead.value == pytest.approx(apart)
    assert lead.low is not None
    assert lead.low > 0
    same = pairs.pearson_above(scores, [2 * score + 1 for score in scores])
    assert same.value == pytest.approx(0)
    assert same.low is None


def test_a_lead_is_over_the_pairs_that_both_have() -> None:
    pairs, scores = drawn()
    others: list[float | None] = [None if place < 10 else -s for place, s in enumerate(scores)]
    expected = pearsonr(scores[10:], pairs.truth[10:]).statistic
    lead = pairs.pearson_above(scores, others)
    assert lead.value == pytest.approx(2 * expected)
    assert lead.n == 50


def test_the_mean_of_repetitions() -> None:
    pairs, scores = drawn()
    opposite = [-score for score in scores]
    assert pairs.mean_pearson([scores, scores]).value == pytest.approx(pairs.pearson(scores).value)
    assert pairs.mean_pearson([scores, opposite]).value == pytest.approx(0)


@pytest.mark.parametrize("scores", [[0.3] * 60, [None] * 60, [0.1 + 0.2, 0.3] * 30])
def test_a_constant_has_no_correlation(scores: list[float | None]) -> None:
    """The last is constant but for rounding."""
    pairs, _ = drawn()
    found = pairs.pearson(scores)
    assert found.value is None
    assert found.reason == "a constant series has no correlation"
    assert all(each.value is None for each in pairs.test(scores))


def test_one_class_has_no_auroc() -> None:
    found = Pairs([1.0] * 6, [0, 1, 2, 3, 4, 5], seed=0).auroc([1, 2, 3, 4, 5, 6])
    assert (found.value, found.reason) == (None, "only one of the two classes occurs")
    assert Pairs((), (), 0).auroc([]).value is None
    assert Pairs((), (), 0).pearson([]).value is None


def test_a_perfect_correlation_has_no_finite_t() -> None:
    t, p = Pairs([0.0, 1.0, 1.0, 0.0], [0, 1, 2, 3], seed=0).test([2.0, 5.0, 5.0, 2.0])
    assert (t.value, p.value) == (None, 0.0)
    assert t.reason == "the correlation is perfect, t is infinite"


def test_few_questions_have_no_interval() -> None:
    found = Pairs([0.0, 1.0, 1.0, 0.0], [0, 1, 2, 3], seed=0).pearson([0.0, 1.0, 2.0, 0.5])
    assert found.value is not None
    assert (found.low, found.high) == (None, None)
