"""The worth of a run's first search, its second, and so on, by each credit rule.

Later searches are those of fewer and harder questions; the table gives the number of runs.
"""

from hopscope.view.pictures.specification import Row, Spec, field, specification, tooltips

COLUMNS = {
    "system": "system",
    "retrieval": "search",
    "rule": "rule",
    "value": "mean",
    "low": "low",
    "high": "high",
    "runs": "runs",
}
NO_RULES = ("system", "retrieval", "runs", "tokens")


def spec(table: Row, *, experiment: str) -> Spec:
    """
    Args:
        table: the table `credit_by_step` of `hopscope compare -t credit_by_step --json`.

    Raises:
        UsageError: no search was measured.
    """
    drawn = [
        {
            **{key: row[key] for key in ("system", "retrieval", "runs")},
            "rule": heading,
            **{key: row[name].get(key) for key in ("value", "low", "high")},
        }
        for name, heading in table["columns"].items()
        if name not in NO_RULES
        for row in table["rows"]
        if isinstance(row.get(name), dict) and row[name]["value"] is not None
    ]
    last = max((row["retrieval"] for row in drawn), default=0)
    x = field("retrieval", "O", "search", axis={"labelAngle": 0})
    colour = field("system", "N", "", scale={"scheme": "tableau10"})
    return specification(
        f"Worth by number of the search in {experiment}",
        f"Mean credit of searches 1 to {last} of a run, by rule and workflow."
        if drawn
        else f"no search of {experiment} was measured",
        drawn,
        COLUMNS,
        facet=field("rule", "N", "", sort=list(table["columns"].values())),
        columns=3,
        spec={
            "width": 190,
            "height": 150,
            "layer": [
                {
                    "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
                    "mark": {"type": "rule", "opacity": 0.6},
                    "encoding": {
                        "x": x,
                        "xOffset": {"field": "system"},
                        "y": field("low", "Q", "credit"),
                        "y2": {"field": "high"},
                        "color": colour,
                    },
                },
                {
                    "mark": {"type": "line", "point": {"size": 40}},
                    "encoding": {
                        "x": x,
                        "xOffset": {"field": "system"},
                        "y": field("value", "Q", "credit"),
                        "color": colour,
                        "tooltip": tooltips(COLUMNS),
                    },
                },
            ],
        },
    )
