"""Fusions, on rankings small enough to check by hand."""

import pytest

from hopscope.runtime.errors import UsageError
from hopscope.runtime.fusions import rrf, weighted
from hopscope.runtime.types import Hit
from tests.fakes import passage


def ranking(**scores: float) -> list[Hit]:
    return [Hit(passage=passage(key), score=score) for key, score in scores.items()]


def table(hits: list[Hit]) -> dict[str, float]:
    return {hit.passage.key: hit.score for hit in hits}


SPARSE = ranking(a=12.0, b=9.0, c=3.0)
DENSE = ranking(b=0.9, d=0.8, a=0.4)


def test_reciprocal_ranks_are_summed() -> None:
    fused = rrf.build().fuse([SPARSE, DENSE], [1, 1])
    assert table(fused) == pytest.approx(
        {"b": 1 / 62 + 1 / 61, "a": 1 / 61 + 1 / 63, "d": 1 / 62, "c": 1 / 63}
    )
    assert [hit.passage.key for hit in fused] == ["b", "a", "d", "c"]


def test_passages_of_the_same_ranks_are_equal_whichever_ranking_gave_which() -> None:
    """(1/61 + 1/67) + 1/62 is less than (1/62 + 1/61) + 1/67 by the last digit, so the passage that
    came first lost its place."""
    rankings = [
        ranking(y=9, x=8),
        ranking(x=9, a=8, b=7, c=6, d=5, e=4, y=3),
        ranking(f=9, y=8, g=7, h=6, i=5, j=4, x=3),
    ]
    first, second = rrf.build().fuse(rankings, [1, 1, 1])[:2]
    assert [hit.passage.key for hit in (first, second)] == ["y", "x"]
    assert first.score == second.score


def test_a_weight_and_the_constant_shift_the_order() -> None:
    fused = rrf.build(k=0).fuse([SPARSE, DENSE], [3, 1])
    assert table(fused) == pytest.approx({"a": 3 + 1 / 3, "b": 3 / 2 + 1, "c": 1, "d": 1 / 2})
    assert [hit.passage.key for hit in fused] == ["a", "b", "c", "d"]


def test_scores_of_the_retrievers_do_not_matter_to_ranks() -> None:
    other = [hit.model_copy(update={"score": -(hit.score**2)}) for hit in SPARSE]
    assert rrf.build().fuse([SPARSE, DENSE], [1, 1]) == rrf.build().fuse([other, DENSE], [1, 1])


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        ("min_max", {"a": 1, "b": 6 / 9 + 2, "c": 0, "d": 2 * 0.8}),
        ("max", {"a": 1 + 2 * 4 / 9, "b": 0.75 + 2, "c": 0.25, "d": 2 * 8 / 9}),
        ("none", {"a": 12.8, "b": 10.8, "c": 3, "d": 1.6}),
    ],
)
def test_normalised_scores_are_weighed_and_summed(
    norm: weighted.Normalisation, expected: dict[str, float]
) -> None:
    fused = weighted.build(norm=norm).fuse([SPARSE, DENSE], [1, 2])
    assert table(fused) == pytest.approx(expected)
    assert [h.passage.key for h in fused] == sorted(expected, key=lambda key: -expected[key])


def test_standard_scores_are_weighed_and_the_absent_are_as_bad_as_the_last() -> None:
    """Otherwise a passage that one retriever does not find at all counts as its average."""
    sparse = ranking(a=3.0, b=1.0)  # mean 2, deviation 1
    dense = ranking(c=5.0, a=1.0)  # mean 3, deviation 2
    fused = weighted.build(norm="z_score").fuse([sparse, dense], [1, 1])
    assert table(fused) == pytest.approx({"a": 1 - 1, "b": -1 - 1, "c": 1 - 1})
    assert [hit.passage.key for hit in fused] == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("norm", "expected"), [("min_max", 1), ("max", 1), ("z_score", 0), ("none", 7)]
)
def test_equal_scores_are_no_division_by_zero(
    norm: weighted.Normalisation, expected: float
) -> None:
    assert weighted.normalised([7.0, 7.0], norm) == [expected, expected]
    assert weighted.normalised([], norm) == []


def test_scores_that_are_not_above_zero_have_no_share_under_max() -> None:
    assert weighted.normalised([-1.0, -2.0], "max") == [0, 0]


@pytest.mark.parametrize("fusion", [rrf.build(), weighted.build(), weighted.build(norm="z_score")])
def test_of_equal_passages_the_first_comes_first_and_nothing_is_lost(
    fusion: rrf.ReciprocalRank | weighted.WeightedSum,
) -> None:
    one, other = ranking(a=1.0, b=0.5), ranking(c=1.0, d=0.5)
    fused = fusion.fuse([one, other, []], [1, 1, 1])
    assert [hit.passage.key for hit in fused] == ["a", "c", "b", "d"]
    assert fusion.fuse([[], []], [1, 1]) == []


def test_a_passage_stays_as_the_first_ranking_has_it() -> None:
    other = passage("a").model_copy(update={"text": "in other words"})
    fused = rrf.build().fuse([ranking(a=1.0), [Hit(passage=other, score=9.0)]], [1, 1])
    assert [hit.passage for hit in fused] == [passage("a")]


@pytest.mark.parametrize("k", [-1.0, float("inf"), float("nan")])
def test_a_constant_that_turns_the_order_around_is_refused(k: float) -> None:
    with pytest.raises(UsageError, match="must be 0 or more"):
        rrf.build(k=k)
