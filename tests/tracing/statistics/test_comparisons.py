"""How GroGU is validated: vector 11 of the specification."""

import pytest

from hopscope.tracing.statistics.comparisons import Wins, accuracy, kendall, macro_f1, widest, wins


@pytest.mark.parametrize(
    ("concordant", "discordant", "tau", "share"),
    [(58, 186, -0.524590, 0.237705), (161, 83, 0.319672, 0.659836)],
)
def test_vector_11_concordance(concordant: int, discordant: int, tau: float, share: float) -> None:
    assert kendall(concordant, discordant) == pytest.approx(tau, abs=1e-6)
    assert accuracy(concordant, discordant) == pytest.approx(share, abs=1e-6)


def test_vector_11_macro_f1() -> None:
    assert macro_f1(129, 32, 83) == pytest.approx(0.595986, abs=1e-6)


def test_vector_11_a_tie_is_no_win() -> None:
    found = wins([0.2, 0.5, -0.1, 0.3], [0.1, 0.5, -0.3, 0.4])
    assert found == (2, 1, 1)
    assert found.rate == 0.5


def test_vector_11_sign_test_leaves_ties_out() -> None:
    assert Wins(15, 5, 7).p_value == pytest.approx(0.041389, abs=1e-6)


def test_vector_11_half_of_the_pairs_rounded_up_is_kept() -> None:
    gaps = [("a", 0.8), ("b", 0.1), ("c", 0.4), ("d", 0.2), ("e", 0.3)]
    assert widest(gaps) == ["a", "c", "e"]
    assert widest([("a", 0.1), ("b", 0.1), ("c", 0.0)]) == ["a"]


def test_nothing_to_compare_has_no_number() -> None:
    assert (wins([], []).rate, Wins(0, 0, 3).p_value) == (None, None)
    assert (kendall(0, 0), accuracy(0, 0), macro_f1(3, 0, 0)) == (None, None, None)
