"""The map of trust: a meter that needs no gold against ΔSePer, which does. Runs in the upper left
are those the label-free meter misses, runs in the lower right those it believes in vain.

Of many runs 5,000 are drawn, spread evenly over the plan.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hopscope.tracing.reports.displays import display
from hopscope.view.pictures.specification import (
    MOST,
    Spec,
    field,
    specification,
    spread,
    tooltips,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLUMNS = {"system": "system", "free": "label-free", "gold": "with gold", "run": "run"}
FEW = 1_000
"""Marks that can be told apart; more are drawn smaller and fainter."""


class Totals(NamedTuple):
    """The totals of runs by two meters."""

    free: "NDArray[np.float64]"
    gold: "NDArray[np.float64]"
    marks: Callable[[Sequence[int]], Sequence[tuple[str, str]]]
    """The id and the system of the runs in these places."""


def spec(totals: Totals, *, experiment: str, free: str, gold: str = "seper") -> Spec:
    """
    Args:
        free, gold: the meters.

    Raises:
        UsageError: no run was measured by both.
    """
    titles = {"x": display(free).heading, "y": display(gold).delta}
    agree = int(((totals.free > 0) == (totals.gold > 0)).sum())
    count = len(totals.free)
    drawn = spread(count, MOST)
    rows = [
        {"run": run, "system": system, "free": float(of_free), "gold": float(of_gold)}
        for (run, system), of_free, of_gold in zip(
            totals.marks(drawn), totals.free[drawn], totals.gold[drawn], strict=True
        )
    ]
    x, y = (field(name, "Q", titles[axis]) for name, axis in (("free", "x"), ("gold", "y")))
    looks = {"opacity": 0.55, "size": 45} if len(rows) <= FEW else {"opacity": 0.3, "size": 12}
    part = f" Drawn are {len(rows):,} of them, spread evenly." if len(rows) < count else ""
    return specification(
        f"Where to trust {titles['x']} in {experiment}",
        f"{titles['x']} and {titles['y']} of {count:,} runs; they agree on the sign of {agree:,}."
        f"{part}"
        if rows
        else f"no run of {experiment} was measured by {free} and {gold}",
        rows,
        COLUMNS,
        width=420,
        height=280,
        mark={"type": "point", "filled": True, **looks},
        encoding={
            "x": x,
            "y": y,
            "color": field("system", "N", "", scale={"scheme": "tableau10"}),
            "tooltip": tooltips(COLUMNS),
        },
    )
