"""The names of figures, and what is said of those that are missing."""

import pytest

from hopscope.lab.suites.figures import figures, table
from hopscope.runtime.types import Measurement
from hopscope.tracing.statistics.over_questions import Estimate

R = Measurement(value=0.5, n=12, seed=3, estimator="pearson", low=0.4, high=0.7)
MISSING = Measurement(value=None, reason="no encoder", n=0)


def test_a_figure_is_named_by_table_row_and_column() -> None:
    mean = Estimate(value=2.0, measured=4, total=5, questions=3, low=1.0, high=3.0, interval="BCa")
    rows = [{"metric": "EM", "r": R, "mean": mean, "n": 12}, {"metric": "BERT", "r": MISSING}]
    found = figures([table("single", "Single", {"metric": "", "r": "r", "mean": "mean"}, rows)])
    assert list(found) == ["single/EM/r", "single/EM/mean", "single/BERT/r"]
    r, mean_of_it, missing = found.values()
    assert (r.value, r.low, r.high, r.n, r.seed, r.estimator) == (0.5, 0.4, 0.7, 12, 3, "pearson")
    assert (mean_of_it.value, mean_of_it.n, mean_of_it.estimator) == (2.0, 4, "BCa")
    assert (missing.value, missing.n, missing.reason) == (None, 0, "no encoder")


def test_a_table_says_once_why_a_row_is_missing() -> None:
    rows = [{"metric": "BERT", "r": MISSING, "t": MISSING}, {"metric": "EM", "r": R}]
    assert table("single", "Single", {"metric": "", "r": "r"}, rows, "a note").notes == (
        "a note",
        "BERT: no encoder",
    )


def test_two_figures_of_one_name_are_no_figures() -> None:
    rows = [{"metric": "EM", "r": R}, {"metric": "EM", "r": R}]
    with pytest.raises(ValueError, match="two figures are called single/EM/r"):
        figures([table("single", "Single", {"metric": "", "r": "r"}, rows)])
