"""The matrix of a run's interactions: which retrievals need each other, and which are redundant.

A cell is the Shapley interaction index of two steps, or of two passages of a step (Grabisch &
Roubens 1999; `tracing.what_if.interactions`).
"""

from collections.abc import Sequence

from hopscope.tracing.reports.displays import display, shown
from hopscope.view.pictures.specification import (
    DIVERGING,
    Row,
    Spec,
    field,
    readable,
    short,
    specification,
    tooltips,
)

COLUMNS = {
    "meter": "meter",
    "row": "first",
    "column": "second",
    "value": "interaction",
    "low": "low",
    "high": "high",
    "reason": "not measured because",
}


def spec(rows: Sequence[Row], *, run: str) -> Spec:
    """
    Args:
        rows: the `interactions` of `hopscope show --interactions steps --json`.

    Raises:
        UsageError: fewer than two parts brought a passage.
    """
    meters = shown(row["meter"] for row in rows if row["value"] is not None)
    drawn = []
    for row in rows:
        if row["meter"] not in meters:
            continue
        names = [
            short(f"{part.removeprefix('p:')} {name}", 28)
            for part, name in zip((row["first"], row["second"]), row["names"], strict=True)
        ]
        for one, other in (names, names[::-1]):
            drawn.append(
                {
                    "meter": display(row["meter"]).heading,
                    "row": one,
                    "column": other,
                    **{name: row[name] for name in ("value", "low", "high", "reason")},
                }
            )
    strongest = max(
        (row for row in drawn if row["value"] is not None),
        key=lambda row: abs(row["value"]),
        default=None,
    )
    description = (
        f"Interactions of the parts of run {run[:12]}: positive where two need each other, "
        f"negative where one makes the other redundant. The strongest is {strongest['value']:.2f}, "
        f"of {strongest['row']} and {strongest['column']} ({strongest['meter']})."
        if strongest
        else f"fewer than two parts of run {run[:12]} have a measured interaction"
    )
    size = {"step": 44}
    order = list(dict.fromkeys(row["row"] for row in drawn))
    axes = {
        "y": field("row", "N", "", sort=order),
        "x": field("column", "N", "", sort=order, axis={"labelAngle": -35}),
    }
    widest = max((abs(row["value"]) for row in drawn if row["value"] is not None), default=1.0)
    scale = {**DIVERGING, "domain": [-(widest or 1.0), widest or 1.0]}
    return specification(
        f"Synergy in run {run[:12]}",
        description,
        drawn,
        COLUMNS,
        facet={"column": field("meter", "N", "", sort=[display(name).heading for name in meters])},
        spec={
            "width": size,
            "height": size,
            "layer": [
                {
                    "mark": "rect",
                    "encoding": {
                        **axes,
                        "color": field("value", "Q", "interaction", scale=scale),
                        "tooltip": tooltips(COLUMNS),
                    },
                },
                {
                    "transform": [{"filter": "isValid(datum.value)"}],
                    "mark": "text",
                    "encoding": {
                        **axes,
                        "text": field("value", "Q", format="+.2f"),
                        "color": readable(f"abs(datum.value) > {0.6 * widest}"),
                    },
                },
            ],
        },
    )
