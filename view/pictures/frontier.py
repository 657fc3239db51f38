"""The frontier of quality against cost: a point for each workflow and policy, with 95 % intervals,
and the upper concave hull, which mixing two of them by a coin reaches (`lab.budget.frontier`)."""

from hopscope.lab.budget.frontier import upper_hull
from hopscope.runtime.errors import UsageError
from hopscope.view.pictures.specification import (
    LESS,
    MORE,
    Row,
    Spec,
    field,
    interval,
    specification,
    tooltips,
)

COLUMNS = {
    "system": "system",
    "cost": "cost",
    "cost_low": "low",
    "cost_high": "high",
    "quality": "quality",
    "low": "low",
    "high": "high",
    "frontier": "on the frontier",
}
COST = "tokens"


def spec(table: Row, *, experiment: str, quality: str = "f1", cost: str = COST) -> Spec:
    """
    Args:
        table: the table `overview` of `hopscope compare --json`.
        quality, cost: its columns.

    Raises:
        UsageError: there are no such columns, or they were not measured.
    """
    for measure in (quality, cost):
        if measure not in table["columns"]:
            known = ", ".join(list(table["columns"])[3:])
            raise UsageError(f"no measure {measure!r}: choose from {known}")
    drawn = [
        {
            "system": row["system"],
            "cost": row[cost]["value"],
            "cost_low": row[cost]["low"],
            "cost_high": row[cost]["high"],
            "quality": row[quality]["value"],
            "low": row[quality]["low"],
            "high": row[quality]["high"],
        }
        for row in table["rows"]
        if row[cost]["value"] is not None and row[quality]["value"] is not None
    ]
    hull = upper_hull([(row["cost"], row["quality"]) for row in drawn])
    for row in drawn:
        row["frontier"] = (row["cost"], row["quality"]) in hull
    names = {"x": table["columns"][cost], "y": table["columns"][quality]}
    best = ", ".join(row["system"] for row in drawn if row["frontier"])
    x, y = field("cost", "Q", names["x"]), field("quality", "Q", names["y"], scale={"zero": False})
    hues = {"condition": {"test": "datum.frontier", "value": MORE}, "value": LESS}
    return specification(
        f"{names['y']} against {names['x']} in {experiment}",
        f"{names['y']} and {names['x']} of {len(drawn)} system{'s' * (len(drawn) != 1)}; "
        f"on the frontier: {best}."
        if drawn
        else f"{quality} and {cost} of {experiment} were not measured",
        drawn,
        COLUMNS,
        width=420,
        height=280,
        layer=[
            {
                "transform": [{"filter": "datum.frontier"}],
                "mark": {"type": "line", "color": MORE, "opacity": 0.5},
                "encoding": {"x": x, "y": y, "order": {"field": "cost"}},
            },
            interval("y", x=x),
            interval("x", "cost_low", "cost_high", y=y),
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": hues, "tooltip": tooltips(COLUMNS)},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 7, "dy": -7, "limit": 200},
                "encoding": {"x": x, "y": y, "text": {"field": "system"}, "color": hues},
            },
        ],
    )
