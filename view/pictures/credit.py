"""Bars of a run's credit: the share of each step by each rule, with intervals, a panel a meter."""

from collections.abc import Sequence

from hopscope.tracing.reports.displays import display, rule_heading, shown
from hopscope.view.pictures.specification import (
    Row,
    Spec,
    field,
    interval,
    specification,
    tooltips,
)

COLUMNS = {
    "meter": "meter",
    "rule": "rule",
    "part": "step",
    "value": "credit",
    "low": "low",
    "high": "high",
    "n": "samples",
    "reason": "not measured because",
}
NO_SHARES = ("level", "total")


def spec(rows: Sequence[Row], *, run: str) -> Spec:
    """
    Args:
        rows: `run.credits.to_dicts()` of the Python library.

    Raises:
        UsageError: the run has no credit.
    """
    meters = shown(row["meter"] for row in rows)
    drawn = [
        {
            "meter": display(row["meter"]).heading,
            "rule": rule_heading(row["rule"]),
            "part": f"{row['step']} {row['name']}",
            **{name: row[name] for name in ("value", "low", "high", "n", "reason", "step")},
        }
        for row in rows
        if row["rule"] not in NO_SHARES
        and row["passage"] is None
        and row["step"] is not None
        and row["meter"] in meters
    ]
    best = max((r for r in drawn if r["value"] is not None), key=lambda r: r["value"], default=None)
    description = (
        f"Credit of the steps of run {run[:12]} by rule and meter. The largest is "
        f"{best['value']:.2f}, of step {best['part']} by {best['rule']} ({best['meter']})."
        if best
        else f"run {run[:12]} has no credit: `hopscope credit {run[:12]}` measures it"
    )
    parts = list(dict.fromkeys(row["part"] for row in sorted(drawn, key=lambda row: row["step"])))
    rules = field("rule", "N", "rule", scale={"scheme": "tableau10"})
    y = {"y": field("part", "N", "", sort=parts), "yOffset": {"field": "rule"}}
    return specification(
        f"Credit of the steps of run {run[:12]}",
        description,
        drawn,
        COLUMNS,
        facet={"column": field("meter", "N", "", sort=[display(name).heading for name in meters])},
        resolve={"scale": {"x": "independent"}},
        spec={
            "width": 200,
            "height": {"step": 13, "for": "offset"},
            "layer": [
                {
                    "mark": "bar",
                    "encoding": {
                        **y,
                        "x": field("value", "Q", "credit"),
                        "color": rules,
                        "tooltip": tooltips(COLUMNS),
                    },
                },
                interval("x", y=y["y"], yOffset=y["yOffset"]),
            ],
        },
    )
