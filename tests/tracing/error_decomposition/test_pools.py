"""EoR's upper bound: the closed form against all pools, and drawn pools."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.tracing.error_decomposition import pools
from hopscope.tracing.error_decomposition.pools import pool_sizes

RIGHT = {"a": (True, True, False, False), "b": (True, False, True, False), "c": (False,) * 4}


def test_pools_by_hand() -> None:
    one, two, three = pool_sizes(RIGHT)
    assert [row.pools for row in (one, two, three)] == [3, 3, 1]
    assert one.quartiles == (0, 0.25, 0.5, 0.5, 0.5)
    assert one.best == ("a",)
    assert two.quartiles == (0.5, 0.5, 0.5, 0.625, 0.75)
    assert two.best == ("a", "b")
    assert three.quartiles == (0.75,) * 5
    assert two.by_question.tolist() == pytest.approx([1, 2 / 3, 2 / 3, 0])


def test_without_questions_there_is_no_bound() -> None:
    assert pool_sizes({"a": [], "b": []}) == []
    with pytest.raises(ValueError, match="cannot be compared"):
        pool_sizes({"a": [True], "b": []})


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=5))
def test_the_mean_over_pools_is_that_of_the_closed_form(rows: list[list[bool]]) -> None:
    table = np.array(rows)
    for found in pool_sizes({str(i): row for i, row in enumerate(rows)}):
        members = list(pools._pools(len(rows), found.size, 0))
        shares = [table[list(each)].any(axis=0) for each in members]
        assert found.seen == found.pools == len(members)
        assert found.by_question == pytest.approx(np.mean(shares, axis=0))


def test_of_too_many_pools_some_are_drawn_by_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "MOST", 5)
    right = {str(i): [i == 0, True] for i in range(6)}
    row = pool_sizes(right, seed=1)[1]
    assert (row.pools, row.seen) == (15, 5)
    again = pool_sizes(right, seed=1)[1]
    assert (row.best, row.quartiles) == (again.best, again.quartiles)
    assert row.by_question.tolist() == pytest.approx([1 / 3, 1])
