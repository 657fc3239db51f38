"""SePer's arithmetic: vectors 1 to 3 of the specification."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.tracing.beliefs import belief

LOGPROBS = [[-0.1, -0.3], [-0.5, -0.7, -0.6], [-1.0]]
R2G = np.array([[0.9], [0.2], [0.05]])
G2R = np.array([[0.6], [0.7], [0.01]])


def test_vector_1_weights() -> None:
    assert belief.weights(LOGPROBS) == pytest.approx([0.471776, 0.316241, 0.211983], abs=1e-6)


@pytest.mark.parametrize(
    ("weight", "direction", "expected"),
    [
        ("lennorm", "max", 0.656566),
        ("lennorm", "r2g", 0.498446),
        ("lennorm", "half", 0.577506),
        ("raw", "r2g", 0.654742),
        ("raw", "max", 0.737391),
        ("raw_normalised", "r2g", 0.544032),
        ("raw_normalised", "max", 0.612706),
        ("uniform", "max", 0.55),
        ("uniform", "r2g", 0.383333),
    ],
)
def test_vector_1_soft(
    weight: belief.Weighting, direction: belief.Direction, expected: float
) -> None:
    weights = belief.weights(LOGPROBS, weight)
    agreement = belief.agreement(R2G, G2R, direction)
    assert belief.soft(weights, agreement) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("golds", "aggregation", "expected"),
    [("A", "union", 0.6), ("AB", "union", 0.9), ("AB", "mean", 0.45), ("AB", "max", 0.6)],
)
def test_vector_2_hard(golds: str, aggregation: belief.Aggregation, expected: float) -> None:
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    matches = np.array([[True, False], [False, True], [False, False]])[:, : len(golds)]
    found = belief.hard(weights, [0, 1, 0, 2], matches, aggregation)
    assert found == pytest.approx(expected)


def test_vector_3_two_replies_and_two_aliases() -> None:
    """The public code lays pairs out gold by gold and reads them reply by reply: .700."""
    weights = np.array([0.75, 0.25])
    rows = np.array([[0.9, 0.1], [0.2, 0.8]])
    assert belief.soft(weights, rows, "max") == pytest.approx(0.725)
    assert belief.soft(weights, rows, "mean") == pytest.approx(0.5)
    assert belief.soft(weights, rows, "union") == pytest.approx(0.875)


def test_ten_identical_samples_of_probability_point_nine_sum_to_nine_when_raw() -> None:
    weights = belief.weights([[float(np.log(0.9))]] * 10, "raw")
    assert belief.soft(weights, np.ones((10, 1))) == pytest.approx(9)


def test_table_5_all_ten_replies_turn_right() -> None:
    """The paper's clearest case: 0 of 10 right without the evidence, 10 of 10 with it."""
    logprobs = [[-0.3 - i / 10] for i in range(10)]
    weights = belief.weights(logprobs)
    after, before = (belief.soft(weights, np.full((10, 1), share)) for share in (1.0, 0.0))
    assert after - before == pytest.approx(1)


def test_table_6_more_right_replies_are_worth_more() -> None:
    """The printed values (3, 2 and 7 of 10 right: .15, .10, .70) need wrong replies of other
    likelihood than right ones and cannot be computed from counts; the order can."""

    def value(right: int, tilt: float) -> float:
        weights = belief.weights([[-0.5]] * right + [[-0.5 + tilt]] * (10 - right))
        return belief.soft(weights, np.array([[1.0]] * right + [[0.0]] * (10 - right)))

    assert [value(right, 0.0) for right in (3, 2, 7)] == pytest.approx([0.3, 0.2, 0.7])
    assert value(3, -float(np.log(0.41))) == pytest.approx(0.15, abs=0.005)
    assert value(2, -float(np.log(0.44))) == pytest.approx(0.10, abs=0.005)
    for tilt in (-1.0, 0.0, 1.0):
        values = [value(right, tilt) for right in range(11)]
        assert values == sorted(values)
        assert values[0] == 0.0
        assert values[-1] == pytest.approx(1)


SHARES = st.floats(0, 1)


@given(
    st.lists(st.tuples(st.lists(st.floats(-5, 0), min_size=1, max_size=3), SHARES, SHARES),
             min_size=1, max_size=6),
    st.sampled_from(["lennorm", "uniform", "raw_normalised"]),
)  # fmt: skip
def test_beliefs_are_shares_and_directions_are_ordered(
    replies: list[tuple[list[float], float, float]], weight: belief.Weighting
) -> None:
    """`max` is at least `half`, which is at least `r2g`; the best gold at least the mean."""
    weights = belief.weights([logprobs for logprobs, _, _ in replies], weight)
    forward = np.array([[r, g] for _, r, g in replies])
    found = {
        (direction, golds): belief.soft(
            weights, belief.agreement(forward, forward[:, ::-1], direction), golds
        )
        for direction in ("max", "half", "r2g")
        for golds in ("union", "max", "mean")
    }
    assert all(-1e-12 <= value <= 1 + 1e-12 for value in found.values())
    for golds in ("union", "max", "mean"):
        ordered = [found[direction, golds] for direction in ("r2g", "half", "max")]
        assert ordered == pytest.approx(sorted(ordered), abs=1e-12)
    for direction in ("max", "half", "r2g"):
        ordered = [found[direction, golds] for golds in ("mean", "max", "union")]
        assert ordered == pytest.approx(sorted(ordered), abs=1e-12)
