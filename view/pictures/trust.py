"""The map of trust: a meter that needs no gold against ΔSePer, which does. Runs in the upper left
are those the label-free meter misses, runs in the lower right those it believes in vain.

Many runs are counted in cells, so that a picture has at most 5,000 marks.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hopscope.tracing.reports.displays import display
from hopscope.view.pictures.specification import (
    MOST,
    Row,
    Spec,
    field,
    specification,
    tooltips,
)

POINTS = {"system": "system", "free": "label-free", "gold": "with gold", "run": "run"}
CELLS = {"free": "label-free from", "gold": "with gold from", "runs": "runs"}
SIDE = 40
"""Cells on a side."""


def spec(rows: Sequence[Row], *, experiment: str, free: str, gold: str = "seper") -> Spec:
    """
    Args:
        rows: one for each run: `run`, `system`, and its totals `free` and `gold`.
        free, gold: the meters.

    Raises:
        UsageError: no run was measured by both.
    """
    titles = {"x": display(free).heading, "y": display(gold).delta}
    agree = sum((row["free"] > 0) == (row["gold"] > 0) for row in rows)
    few = len(rows) <= MOST
    x, y = (field(name, "Q", titles[axis]) for name, axis in (("free", "x"), ("gold", "y")))
    if few:
        body: dict[str, Any] = {
            "mark": {"type": "point", "filled": True, "opacity": 0.55, "size": 45},
            "encoding": {
                "x": x,
                "y": y,
                "color": field("system", "N", "", scale={"scheme": "tableau10"}),
                "tooltip": tooltips(POINTS),
            },
        }
    else:
        ends = {"x2": {"field": "free_end"}, "y2": {"field": "gold_end"}}
        shade = field("runs", "Q", "runs", scale={"scheme": "blues", "type": "log"})
        body = {
            "mark": "rect",
            "encoding": {"x": x, "y": y, **ends, "color": shade, "tooltip": tooltips(CELLS)},
        }
    return specification(
        f"Where to trust {titles['x']} in {experiment}",
        f"{titles['x']} and {titles['y']} of {len(rows)} runs; they agree on the sign of {agree}."
        if rows
        else f"no run of {experiment} was measured by {free} and {gold}",
        rows if few else cells(rows),
        POINTS if few else CELLS,
        width=420,
        height=280,
        **body,
    )


def cells(rows: Sequence[Row]) -> list[dict[str, float]]:
    """The number of runs in each cell of a grid."""
    edges = {}
    for name in ("free", "gold"):
        low = min(row[name] for row in rows)
        width = (max(row[name] for row in rows) - low) / SIDE or 1.0
        edges[name] = (low, width)

    def place(row: Row, name: str) -> int:
        low, width = edges[name]
        return min(SIDE - 1, int((row[name] - low) / width))

    counted = Counter((place(row, "free"), place(row, "gold")) for row in rows)
    return [
        {
            "free": edges["free"][0] + at * edges["free"][1],
            "free_end": edges["free"][0] + (at + 1) * edges["free"][1],
            "gold": edges["gold"][0] + level * edges["gold"][1],
            "gold_end": edges["gold"][0] + (level + 1) * edges["gold"][1],
            "runs": count,
        }
        for (at, level), count in sorted(counted.items())
    ]
