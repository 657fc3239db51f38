"""Whether two series go together: the validity test of SePer's Table 2."""

from math import inf, sqrt
from typing import NamedTuple

from scipy.stats import t as student


class CorrelationTest(NamedTuple):
    statistic: float
    """Student's t with n - 2 degrees of freedom."""
    p: float
    """Two-sided."""


def pearson_test(r: float, n: int) -> CorrelationTest:
    """Test of no correlation for a Pearson coefficient `r` over `n` pairs.

    t = r √((n-2) / (1-r²)) (Dai et al. 2025, section 4.1).

    Raises:
        ValueError: fewer than three pairs, or r outside [-1, 1].
    """
    if n < 3 or not -1 <= r <= 1:
        raise ValueError(f"no correlation test for r={r} over {n} pairs")
    if abs(r) == 1:
        return CorrelationTest(r * inf, 0.0)
    statistic = r * sqrt((n - 2) / (1 - r * r))
    return CorrelationTest(statistic, float(2 * student.sf(abs(statistic), n - 2)))
