"""The waterfall of a run's belief: from no evidence through each step, with intervals.

Each bar is a step's change of the meter's value, after all earlier steps.
"""

from typing import Any

from hopscope.tracing.reports.displays import display, leading
from hopscope.view.pictures.specification import (
    LESS,
    LEVEL,
    MORE,
    Row,
    Spec,
    field,
    interval,
    short,
    specification,
    tooltips,
)

COLUMNS = {
    "step": "step",
    "start": "before",
    "end": "after",
    "change": "change",
    "low": "low",
    "high": "high",
    "tokens": "tokens",
    "reason": "not measured because",
}


def spec(report: Row, *, meter: str | None = None) -> Spec:
    """
    Args:
        report: of a run, as `hopscope show --json` prints it.
        meter: by default the one that represents the run.

    Raises:
        UsageError: the run was not measured.
    """
    measured = [name for name in names(report) if _measured(report, name)]
    chosen = meter or leading(measured) or "seper"
    told = display(chosen)
    rows = steps(report, chosen) if chosen in measured else []
    title = f"{told.heading} after each step: {short(report['question'])}"
    ended = rows[-1]["end"] if rows else None
    description = (
        f"Waterfall of {told.heading} over the {len(rows) - 1} steps of run {report['id'][:12]}, "
        f"which ends at {_number(ended)}."
        if rows
        else f"run {report['id'][:12]} was not measured: `hopscope credit {report['id'][:12]}` does"
    )
    x = field("step", "N", sort=None, axis={"labelAngle": -30})
    colours = {"domain": ["gain", "loss", "level"], "range": [MORE, LESS, LEVEL]}
    unit = f"{told.heading} ({told.unit})" if told.unit else told.heading
    return specification(
        title,
        description,
        rows,
        COLUMNS,
        width={"step": 46},
        height=220,
        layer=[
            {
                "transform": [{"filter": "isValid(datum.start) && isValid(datum.end)"}],
                "mark": {"type": "bar", "size": 26, "minBandSize": 2},
                "encoding": {
                    "x": x,
                    "y": field("start", "Q", unit),
                    "y2": {"field": "end"},
                    "color": field("kind", "N", "", scale=colours),
                    "tooltip": tooltips(COLUMNS),
                },
            },
            {
                "transform": [{"filter": "isValid(datum.end)"}],
                "mark": {"type": "tick", "thickness": 2, "size": 30, "color": "#555"},
                "encoding": {"x": x, "y": field("end", "Q", unit)},
            },
            interval("y", x=x),
        ],
    )


def names(report: Row) -> list[str]:
    """The meters of a report."""
    return list(dict.fromkeys(name for step in report["steps"] for name in step["credit"]))


def steps(report: Row, meter: str) -> list[dict[str, Any]]:
    """The value before any step, then of each step: its change and the value after it."""
    whole = report["total"][meter] or {}
    first = whole.get("before") if "before" in whole else 0.0
    rows = [_row("closed book", 0.0, first, {}, {}) | {"kind": "level", "change": None}]
    last = first
    for step in report["steps"]:
        credit = step["credit"].get(meter) or {}
        after = credit.get("value")
        name = f"{step['index']} {step['name']}"
        rows.append(_row(name, last, last if after is None else after, credit, step))
        last = last if after is None else after
    return rows


def _row(
    name: str, start: float | None, end: float | None, credit: Row, step: Row
) -> dict[str, Any]:
    change = credit.get("delta")
    low, high = credit.get("low"), credit.get("high")
    if change is None and start is not None and end is not None and step:
        change = end - start
    based = None if end is None or change is None else end - change
    return {
        "step": name,
        "start": start,
        "end": end,
        "change": change,
        "low": None if low is None or based is None else based + low,
        "high": None if high is None or based is None else based + high,
        "kind": "level" if not change else "gain" if change > 0 else "loss",
        "tokens": step["usage"]["input_tokens"] + step["usage"]["output_tokens"] if step else None,
        "reason": credit.get("reason"),
    }


def _measured(report: Row, meter: str) -> bool:
    return any(
        (step["credit"].get(meter) or {}).get("value") is not None for step in report["steps"]
    )


def _number(value: float | None) -> str:
    return "an unknown value" if value is None else f"{value:.2f}"
