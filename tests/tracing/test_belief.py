"""SePer's arithmetic: vectors 1 to 3 of the specification."""

import numpy as np
import pytest

from hopscope.tracing import belief

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
