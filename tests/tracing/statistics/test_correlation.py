"""Rank correlations of eRAG; the end of vector 13. Vector 6 stands with SePer."""

import numpy as np
import pytest

from hopscope.tracing.statistics.correlation import RankCorrelation, rank_correlation

X, Y = [0.4, 0.2, 0.2, 0, 1], [1, 0, 1, 0, 1]


def test_vector_13_ties() -> None:
    assert rank_correlation("kendall", X, Y).value == pytest.approx(0.680414, abs=1e-6)
    assert rank_correlation("spearman", X, Y).value == pytest.approx(0.740436, abs=1e-6)


@pytest.mark.parametrize("kind", ["kendall", "spearman"])
def test_vector_13_two_binary_series_have_one_coefficient(kind: RankCorrelation) -> None:
    """Why the columns R and Hit of the paper's Table 1 are equal."""
    found = rank_correlation(kind, [1, 1, 0, 0, 1], [1, 0, 0, 0, 1])
    assert found.value == pytest.approx(2 / 3)


@pytest.mark.parametrize("kind", ["kendall", "spearman"])
@pytest.mark.parametrize(
    ("one", "other", "why"),
    [([1, 1, 1], [1, 2, 3], "constant"), ([1, 2], [0, 0], "constant"), ([1], [1], "two pairs")],
)
def test_a_series_without_order_has_no_correlation(
    kind: RankCorrelation, one: list[float], other: list[float], why: str
) -> None:
    found = rank_correlation(kind, one, other)
    assert found.value is None
    assert why in (found.reason or "")


def test_series_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="3 values cannot be paired with 2"):
        rank_correlation("kendall", [1, 2, 3], [1, 2])


def test_few_pairs_or_no_change_have_no_interval() -> None:
    """Of twenty binary pairs with four right answers the bootstrap covers .56 to .88."""
    rare = [1.0] * 4 + [0.0] * 16
    for one, other in ((X, Y), (rare, [*range(20)])):
        few = rank_correlation("kendall", one, other)
        assert few.value is not None
        assert few.low is None


@pytest.mark.parametrize(("kind", "fall"), [("kendall", 4), ("spearman", 6)])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_perfect_correlation_has_an_interval(kind: RankCorrelation, fall: int, sign: int) -> None:
    """Resampling it changes nothing, so that it had none. With 20 pairs q = .168."""
    found = rank_correlation(kind, list(range(20)), [sign * i for i in range(20)])
    assert found.value == pytest.approx(sign)
    q = 1 - 0.025 ** (1 / 20)
    far, near = sign * (1 - fall * q * (1 - q)), sign * 1.0
    assert (found.low, found.high) == pytest.approx(tuple(sorted((far, near))))
    assert "unseen disagreement" in found.estimator


@pytest.mark.parametrize("kind", ["kendall", "spearman"])
def test_the_interval_covers_where_binary_scores_tie(kind: RankCorrelation) -> None:
    """Fieller's covers .85 here. 60 draws: nominal coverage fails this with p < .005."""
    rng = np.random.default_rng(3)

    def draw(n: int) -> tuple[list[float], list[float]]:
        able = rng.normal(size=n)
        right = rng.random(n) < 1 / (1 + np.exp(-2 * able))
        labels = rng.binomial(5, 1 / (1 + np.exp(-able))) / 5
        return labels.tolist(), right.astype(float).tolist()

    truth = rank_correlation(kind, *draw(20_000), resamples=1).value or 0
    covered = 0
    for seed in range(60):
        found = rank_correlation(kind, *draw(60), seed=seed, resamples=150)
        covered += (found.low or 0) <= truth <= (found.high or 0)
    assert covered >= 52


def test_the_seed_fixes_the_interval() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=30).tolist(), rng.normal(size=30).tolist()
    one, same, other = (rank_correlation("kendall", x, y, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one.low != other.low


@pytest.mark.parametrize("kind", ["kendall", "spearman"])
def test_pairs_of_a_cluster_are_drawn_together(kind: RankCorrelation) -> None:
    """Four copies of each pair tell no more than one: only their number is larger."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=20).tolist(), rng.integers(0, 4, 20).tolist()
    one = rank_correlation(kind, x, y, clusters=range(20))
    assert one.model_copy(update={"estimator": ""}) == rank_correlation(kind, x, y).model_copy(
        update={"estimator": ""}
    )
    copied = rank_correlation(kind, x * 4, y * 4, clusters=[*range(20)] * 4)
    assert copied.n == 80
    assert "over clusters" in copied.estimator
    naive = rank_correlation(kind, x * 4, y * 4)
    assert copied.low is not None
    assert copied.high is not None
    assert naive.low is not None
    assert naive.high is not None
    assert copied.high - copied.low > 1.5 * (naive.high - naive.low)
    assert (copied.low, copied.high) == (pytest.approx(one.low), pytest.approx(one.high))


def test_a_pair_without_a_cluster_is_refused() -> None:
    with pytest.raises(ValueError, match="3 pairs, but 2 of them have a cluster"):
        rank_correlation("kendall", [1, 2, 3], [1, 2, 3], clusters=[0, 1])


def test_few_clusters_that_vary_have_no_interval() -> None:
    """Twenty pairs in four clusters are four draws."""
    values = [float(i) for i in range(20)]
    few = rank_correlation("kendall", values, values[::-1], clusters=[i // 5 for i in range(20)])
    assert few.value == pytest.approx(-1)
    assert few.low is None
