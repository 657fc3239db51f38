"""The stream of sampled answers over the steps of a run: answers that mean the same share a band,
as high as their mass. Bands with a right answer have a dark edge, and a mark in the legend.

A band is a column at each step, and an area between the columns. What was sampled seldom, and what
was not stored, is one band of other answers.
"""

from collections.abc import Sequence
from typing import Any

from hopscope.view.pictures.specification import Row, Spec, field, short, specification, tooltips

COLUMNS = {"step": "step", "answer": "answer", "mass": "mass", "gold": "right"}
SHOWN = 9
"""Meanings with a band of their own; the rest share one."""
REST = "other answers"
EMPTY = "(empty)"
NOTHING = "no answers were sampled"
GOLD, RIGHT = "#222", "right:"
"""The edge of right answers, and their mark in the legend."""
LEAST = 0.001
"""A mass below this is the rounding of the others."""


def spec(rows: Sequence[Row], *, question: str, reason: str = NOTHING) -> Spec:
    """
    Args:
        rows: one for each step and meaning: `order`, `step`, `answer`, `mass` and `gold`.
        reason: why there are no rows, where there are none.

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
        else reason
    )
    steps = list(dict.fromkeys(short(row["step"]) for row in drawn))
    names = list(dict.fromkeys(short(row["band"]) for row in drawn))
    bands = {
        "x": field("step", "N", "", sort=steps, axis={"labelAngle": -30}),
        "y": field("mass", "Q", "mass", stack="zero", scale={"domain": [0, 1]}),
        "color": field("band", "N", "answer", sort=names, scale={"scheme": "tableau10"}),
        "order": {"field": "place"},
    }
    edge = {"condition": {"test": "datum.gold", "value": GOLD}, "value": None}
    return specification(
        f"Sampled answers: {short(question)}",
        description,
        drawn,
        COLUMNS,
        width={"step": 90},
        height=240,
        layer=[
            {
                "mark": {"type": "area", "opacity": 0.45, "line": False},
                "encoding": {**bands, "detail": {"field": "gold"}},
            },
            {
                "transform": [{"filter": "datum.mass > 0"}],
                "mark": {"type": "bar", "width": {"band": 0.35}, "strokeWidth": 3},
                "encoding": {**bands, "stroke": edge, "tooltip": tooltips(COLUMNS)},
            },
        ],
    )


def _merged(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows, with rare meanings counted as one, and every band at every step; the mass that no
    row names belongs to the other answers."""
    totals: dict[str, float] = {}
    right = {row["answer"] for row in rows if row["gold"]}
    for row in rows:
        totals[row["answer"]] = totals.get(row["answer"], 0.0) + row["mass"]
    heaviest = sorted(totals, key=lambda answer: (answer not in right, -totals[answer], answer))
    bands = [*heaviest[:SHOWN], REST]
    steps = dict(sorted({row["order"]: row["step"] for row in rows}.items()))
    found = {
        (order, answer): {
            "order": order,
            "step": step,
            "answer": answer,
            "mass": 0.0,
            "gold": answer in right,
            "band": f"{RIGHT} {answer}" if answer in right else answer,
            "place": place,
        }
        for order, step in steps.items()
        for place, answer in enumerate(bands)
    }
    for row in rows:
        band = found[row["order"], row["answer"] if row["answer"] in bands else REST]
        band["mass"] += row["mass"]
    for order in steps:
        named = sum(found[order, answer]["mass"] for answer in bands)
        found[order, REST]["mass"] += max(0.0, 1 - named) if 1 - named > LEAST else 0.0
    unused = {answer for answer in bands if not sum(found[o, answer]["mass"] for o in steps)}
    return [row for (_, answer), row in found.items() if answer not in unused]
