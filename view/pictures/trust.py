"""The map of trust: meters that need no gold against ΔSePer, which does. Runs in the upper left are
those a label-free meter misses, runs in the lower right those it believes in vain.

Of many runs 5,000 are drawn, spread evenly over the plan.
"""

from collections.abc import Callable, Mapping, Sequence
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

COLUMNS = {
    "meter": "meter",
    "system": "system",
    "free": "label-free",
    "gold": "with gold",
    "run": "run",
}
FEW = 1_000
"""Marks that can be told apart; more are drawn smaller and fainter."""


class Totals(NamedTuple):
    """The totals of runs by two meters."""

    free: "NDArray[np.float64]"
    gold: "NDArray[np.float64]"
    marks: Callable[[Sequence[int]], Sequence[tuple[str, str]]]
    """The id and the system of the runs in these places."""


def spec(totals: Mapping[str, Totals], *, experiment: str, gold: str = "seper") -> Spec:
    """
    Args:
        totals: by label-free meter; each has a panel.
        gold: the meter that needs a gold.

    Raises:
        UsageError: no run was measured by both kinds of meters.
    """
    measured = {meter: found for meter, found in totals.items() if len(found.free)}
    headings = {meter: display(meter).heading for meter in measured}
    title = display(gold).delta
    most = MOST // max(1, len(measured))
    told, rows = [], []
    for meter, found in measured.items():
        count, drawn = len(found.free), spread(len(found.free), most)
        agree = int(((found.free > 0) == (found.gold > 0)).sum())
        part = f" Drawn are {len(drawn):,} of them, spread evenly." if len(drawn) < count else ""
        told.append(
            f"{headings[meter]} and {title} of {count:,} runs; they agree on the sign of "
            f"{agree:,}.{part}"
        )
        values = zip(found.marks(drawn), found.free[drawn], found.gold[drawn], strict=True)
        rows += [
            {
                "meter": headings[meter],
                "run": run,
                "system": system,
                "free": float(of_free),
                "gold": float(of_gold),
            }
            for (run, system), of_free, of_gold in values
        ]
    names = " and ".join(headings.values())
    one = len(measured) == 1
    looks = {"opacity": 0.55, "size": 45} if len(rows) <= FEW else {"opacity": 0.3, "size": 12}
    panel = {
        "width": 420 if one else 300,
        "height": 280,
        "mark": {"type": "point", "filled": True, **looks},
        "encoding": {
            "x": field("free", "Q", names if one else "label-free meter"),
            "y": field("gold", "Q", title),
            "color": field("system", "N", "", scale={"scheme": "tableau10"}),
            "tooltip": tooltips(COLUMNS),
        },
    }
    column = {"column": field("meter", "N", "", sort=list(headings.values()))}
    panels = {"facet": column, "spec": panel, "resolve": {"scale": {"x": "independent"}}}
    return specification(
        f"Where to trust {names or 'label-free meters'} in {experiment}",
        " ".join(told)
        or f"no run of {experiment} was measured by {' or '.join(totals) or 'a label-free meter'} "
        f"and {gold}",
        rows,
        COLUMNS,
        **(panel if one else panels),
    )
