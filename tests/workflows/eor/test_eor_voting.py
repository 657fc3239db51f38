"""EoR's voter, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.workflows.eor.voting import Floats, Pooling, VotingRule, pool, vote, weighted


def matrix(rows: list[tuple[float, ...]]) -> Floats:
    """Each row is one answer's similarities to the others, in order."""
    return np.array([[*row[:i], 1.0, *row[i:]] for i, row in enumerate(rows)])


FOUR = matrix([(0.9, 0.2, 0.85), (0.9, 0.1, 0.3), (0.2, 0.1, 0), (0.85, 0.3, 0)])


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("mean", [0.65, 0.433333, 0.1, 0.383333]),
        ("max", [0.9, 0.9, 0.2, 0.85]),
        ("majority", [1, 0, 0, 0]),
        ("plurality", [1, 0, 0, 0]),
        ("voting", [0.9, 0.9, 0, 0.85]),
        ("majority_voting", [0.875, 0, 0, 0]),
    ],
)
def test_vector_14(pooling: Pooling, expected: list[float]) -> None:
    assert pool(FOUR, VotingRule(pooling)) == pytest.approx(expected, abs=1e-6)


def by_majority_voting(similarity: list[list[float]], same: float) -> list[float]:
    """What the authors' code does, from its description: of the answers with the most others at
    `same` or above, the mean of that many highest similarities, one at least; 0 for the rest."""
    others = [[*row[:i], *row[i + 1 :]] for i, row in enumerate(similarity)]
    counts = [sum(value >= same for value in row) for row in others]
    most = max(counts)
    highest = [sorted(row)[-max(most, 1) :] for row in others]
    return [
        sum(kept) / len(kept) if count == most else 0.0
        for kept, count in zip(highest, counts, strict=True)
    ]


def test_majority_voting_on_random_matrices() -> None:
    """Where no two answers were alike all scored 0 and the first of the pool won: in half of
    these the winner was another."""
    random, alone = np.random.default_rng(4), 0
    for _ in range(3000):
        answers = int(random.integers(2, 6))
        similarity = random.random((answers, answers)) ** random.choice([0.3, 1, 3])
        similarity = (similarity + similarity.T) / 2
        np.fill_diagonal(similarity, 1)
        expected = by_majority_voting(similarity.tolist(), 0.8)
        assert pool(similarity, VotingRule("majority_voting")) == pytest.approx(expected)
        verdict = vote(similarity, [1] * answers, VotingRule("majority_voting"))
        assert verdict.winner == np.round(expected, 12).argmax()
        alone += not (similarity[~np.eye(answers, dtype=bool)] >= 0.8).any()
    assert alone > 1000


def same(answers: str) -> Floats:
    return np.array([[float(a == b) for b in answers] for a in answers])


def test_vector_15_who_is_left_out_votes_in_the_paper() -> None:
    verdict = vote(same("ABBB"), [0.5, 0.4, 0.05, 0.05], VotingRule(zero_weight_votes=True))
    assert verdict.winner == 1
    assert verdict.scores == pytest.approx([0, 0.4 * 2 / 3, 0, 0])


def test_vector_15_and_does_not_in_the_code() -> None:
    verdict = vote(same("ABBB"), [0.5, 0.4, 0.05, 0.05], VotingRule())
    assert verdict.winner == 0
    assert verdict.scores == pytest.approx([0, 0, 0, 0])


def test_a_weight_at_the_threshold_is_left_out() -> None:
    """I[ω > t], not ≥."""
    assert vote(same("BAA"), [0.1, 0.2, 0.2], VotingRule()).winner == 1
    assert vote(same("ABB"), [0.5, 0.1, 0.1], VotingRule(zero_weight_votes=True)).winner == 0


def test_one_that_is_left_wins_without_a_vote() -> None:
    for zero_weight_votes in (True, False):
        verdict = vote(same("AAB"), [0, 0, 1], VotingRule(zero_weight_votes=zero_weight_votes))
        assert verdict.winner == 2


def test_if_none_is_trusted_the_first_of_the_pool_wins() -> None:
    assert vote(same("ABB"), [0, 0, 0], VotingRule()).winner == 0
    assert vote(same("ABB"), [0, 0, 0], VotingRule(zero_weight_votes=True)).winner == 0


def test_the_first_of_equal_scores_wins_even_if_sums_differ_in_the_last_digit() -> None:
    one, other = 0.1 + 0.2, 0.3  # not equal as floats
    rows = np.array([[[1, other], [one, 1]]])
    assert vote(rows, [1, 1], VotingRule()).winner == [0]


def test_similarities_are_weighted_by_shares() -> None:
    tensor = np.stack([np.full((2, 2), 0.2), np.full((2, 2), 0.8)])
    assert weighted(tensor, [3, 1])[0, 1] == pytest.approx(0.35)
    assert weighted(tensor, [0, 0])[0, 1] == 0


POOLINGS: list[Pooling] = ["mean", "max", "majority", "plurality", "voting", "majority_voting"]


@given(
    data=st.data(),
    answers=st.integers(1, 5),
    pooling=st.sampled_from(POOLINGS),
    zero_weight_votes=st.booleans(),
)
def test_many_questions_are_voted_on_as_one_by_one(
    data: st.DataObject, answers: int, pooling: Pooling, zero_weight_votes: bool
) -> None:
    unit = st.floats(0, 1)
    size = 2 * answers * answers
    values = data.draw(st.lists(unit, min_size=size, max_size=size))
    tensor = np.array(values).reshape(2, answers, answers)
    weights = data.draw(st.lists(unit, min_size=answers, max_size=answers))
    rule = VotingRule(pooling, zero_weight_votes=zero_weight_votes)
    together = vote(tensor, weights, rule)
    for question in range(2):
        alone = vote(tensor[question], weights, rule)
        assert together.winner[question] == alone.winner
        assert together.scores[question] == pytest.approx(alone.scores)
    assert np.isfinite(together.scores).all()
    assert (together.scores >= 0).all()
