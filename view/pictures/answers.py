"""The stream of sampled answers over the steps of a run: answers that mean the same share a band,
as high as their mass. Bands with a right answer have a dark edge."""

from collections.abc import Sequence
from typing import Any

from hopscope.view.pictures.specification import Row, Spec, field, short, specification, tooltips

COLUMNS = {"step": "step", "answer": "answer", "mass": "mass", "gold": "right"}
SHOWN = 9
"""Meanings with a band of their own; the rest share one."""
REST = "other answers"


def spec(rows: Sequence[Row], *, question: str) -> Spec:
    """
    Args:
        rows: one for each step and meaning: `order`, `step`, `answer`, `mass` and `gold`.

    Raises:
        UsageError: no answers were sampled.
    """
    drawn = _merged(rows)
    last = max((row["order"] for row in drawn), default=0)
    likeliest = max((r for r in drawn if r["order"] == last), key=lambda r: r["mass"], default=None)
    description = (
        f"Mass of the sampled answers, grouped by meaning, after each of {last} steps. At the end "
        f"the likeliest is {likeliest['answer']!r} with {likeliest['mass']:.2f}."
        if likeliest
        else "no answers were sampled"
    )
    return specification(
        f"Sampled answers: {short(question)}",
        description,
        drawn,
        COLUMNS,
        width={"step": 70},
        height=240,
        mark={"type": "bar", "width": {"band": 0.9}, "strokeWidth": 2},
        encoding={
            "x": field("step", "N", sort={"field": "order"}, axis={"labelAngle": -30}),
            "y": field("mass", "Q", "mass", stack="normalize"),
            "color": field("answer", "N", "answer", scale={"scheme": "tableau10"}),
            "stroke": {"condition": {"test": "datum.gold", "value": "#222"}, "value": None},
            "order": {"field": "gold", "sort": "descending"},
            "tooltip": tooltips(COLUMNS),
        },
    )


def _merged(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows, with rare meanings counted as one."""
    totals: dict[str, float] = {}
    for row in rows:
        totals[row["answer"]] = totals.get(row["answer"], 0.0) + row["mass"] + 100 * row["gold"]
    kept = set(sorted(totals, key=lambda answer: -totals[answer])[:SHOWN])
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for row in rows:
        answer = row["answer"] if row["answer"] in kept else REST
        merged = found.setdefault((row["order"], answer), {**row, "answer": answer, "mass": 0.0})
        merged["mass"] = merged["mass"] + row["mass"]
    return list(found.values())
