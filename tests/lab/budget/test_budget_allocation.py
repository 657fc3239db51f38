"""The knapsack against all allocations there are, and against cases worked by hand."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.lab.budget.allocate import Option, allocate, hull
from hopscope.runtime.errors import UsageError


def options(*pairs: tuple[float, float]) -> list[Option]:
    """(cost, value) by number of retrievals."""
    return [Option(retrievals=i, cost=c, value=v) for i, (c, v) in enumerate(pairs)]


def test_the_next_token_goes_where_it_brings_most() -> None:
    easy, hard = options((1, 0.5), (3, 0.9)), options((1, 0.0), (3, 0.1), (5, 0.9))
    found = allocate([easy, hard], 4)
    assert [option.retrievals for option in found.chosen] == [1, 0]
    # The second of `hard` lies under the line from its first to its third, 0.9 for 4; 2 are left,
    # so the bound takes half of that.
    assert found.bound == pytest.approx(0.5 + 0.45)
    assert [o.retrievals for o in allocate([easy, hard], 6).chosen] == [0, 2]
    assert [o.retrievals for o in allocate([easy, hard], 8).chosen] == [1, 2]


def test_options_that_cost_more_and_bring_no_more_are_not_on_the_hull() -> None:
    found = hull(options((1, 0.5), (2, 0.5), (3, 0.4), (4, 0.6), (5, 0.8)))
    assert [option.retrievals for option in found] == [0, 4]


def test_a_total_below_the_least_is_refused() -> None:
    with pytest.raises(UsageError, match="the least it takes is 2"):
        allocate([options((1, 0)), options((1, 0))], 1)
    with pytest.raises(UsageError, match="without options"):
        allocate([[]], 1)


batches = st.lists(
    st.lists(
        st.tuples(st.integers(0, 9), st.floats(0, 1, allow_subnormal=False)), min_size=1, max_size=3
    ).map(lambda pairs: options(*pairs)),
    min_size=1,
    max_size=4,
)


@given(batches, st.integers(0, 30))
def test_the_bound_holds_and_the_gap_is_one_upgrade_at_most(
    batch: list[list[Option]], total: int
) -> None:
    every = [
        sum(o.value for o in chosen)
        for chosen in product(*batch)
        if sum(o.cost for o in chosen) <= total
    ]
    if total < sum(hull(each)[0].cost for each in batch):
        with pytest.raises(UsageError):
            allocate(batch, total)
        return
    found = allocate(batch, total)
    assert found.cost <= total
    assert found.value <= max(every) + 1e-9
    assert max(every) <= found.bound + 1e-9
    largest = max(o.value for each in batch for o in each)
    assert found.gap <= largest + 1e-9


@given(batches, st.integers(0, 30), st.integers(0, 20))
def test_more_never_lowers_the_value_or_the_bound(
    batch: list[list[Option]], total: int, more: int
) -> None:
    total += sum(int(hull(each)[0].cost) for each in batch)
    less, found = allocate(batch, total), allocate(batch, total + more)
    assert found.value >= less.value - 1e-9
    assert found.bound >= less.bound - 1e-9
