"""Precision, recall and F1 of chosen passages."""

import pytest

from hopscope.tracing.erag.selection import SelectionCounts, agreement


def test_vector_17_counts_are_added_before_they_are_divided() -> None:
    """Averaging the two questions' own precisions would give 5/6."""
    found = agreement([(["a", "b", "x"], ["a", "b", "c"]), (["d"], ["d", "e"])])
    assert found == SelectionCounts(right=3, wrong=1, missed=2)
    assert found.precision == pytest.approx(0.75)
    assert found.recall == pytest.approx(0.6)
    assert found.f1 == pytest.approx(2 / 3)


def test_what_cannot_be_measured_is_not_zero() -> None:
    nothing = agreement([((), ())])
    assert (nothing.precision, nothing.recall, nothing.f1) == (None, None, None)
    silent = agreement([((), ("a",))])
    assert (silent.precision, silent.recall, silent.f1) == (None, 0, 0)


def test_a_passage_chosen_twice_counts_once() -> None:
    assert agreement([(["a", "a"], ["a"])]) == SelectionCounts(1, 0, 0)
