"""How GroGU is validated: vector 11 of the specification."""

import pytest

from hopscope.tracing.statistics.comparisons import kendall, macro_f1, widest


@pytest.mark.parametrize(
    ("concordant", "discordant", "tau", "share"),
    [(58, 186, -0.524590, 0.237705), (161, 83, 0.319672, 0.659836)],
)
def test_vector_11_concordance(concordant: int, discordant: int, tau: float, share: float) -> None:
    found = kendall(concordant, discordant)
    assert found == pytest.approx(tau, abs=1e-6)
    assert (1 + found) / 2 == pytest.approx(share, abs=1e-6)


def test_vector_11_macro_f1() -> None:
    assert macro_f1(129, 32, 83) == pytest.approx(0.595986, abs=1e-6)


def test_vector_11_half_of_the_pairs_rounded_up_is_kept() -> None:
    gaps = [("a", 0.8), ("b", 0.1), ("c", 0.4), ("d", 0.2), ("e", 0.3)]
    assert widest(gaps) == ["a", "c", "e"]
    assert widest([("a", 0.1), ("b", 0.1), ("c", 0.0)]) == ["a"]


def test_nothing_to_compare_has_no_number() -> None:
    assert (kendall(0, 0), macro_f1(3, 0, 0)) == (None, None)
