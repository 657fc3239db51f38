"""The workflows of an experiment side by side: a panel for each measure, with 95 % intervals."""

from hopscope.view.pictures.specification import (
    MORE,
    Row,
    Spec,
    field,
    interval,
    specification,
    tooltips,
)

COLUMNS = {
    "measure": "measure",
    "system": "system",
    "value": "mean",
    "low": "low",
    "high": "high",
    "questions": "questions",
    "reason": "not measured because",
}


def spec(table: Row, *, experiment: str) -> Spec:
    """
    Args:
        table: the table `overview` of `hopscope compare --json`.

    Raises:
        UsageError: nothing is done yet.
    """
    drawn = [
        {
            "measure": table["columns"][name],
            "system": row["system"],
            **{key: cell.get(key) for key in ("value", "low", "high", "questions", "reason")},
        }
        for name in table["columns"]
        for row in table["rows"]
        if isinstance(cell := row.get(name), dict)
    ]
    shown = {row["measure"] for row in drawn if row["value"] is not None}
    drawn = [row for row in drawn if row["measure"] in shown]
    systems = list(dict.fromkeys(row["system"] for row in table["rows"]))
    y = field("system", "N", "", sort=systems)
    return specification(
        f"Workflows of {experiment}",
        f"Means of {len(shown)} measures for {', '.join(systems)}, with 95 % intervals.",
        drawn,
        COLUMNS,
        facet=field("measure", "N", "", sort=list(table["columns"].values())),
        columns=3,
        resolve={"scale": {"x": "independent"}},
        spec={
            "width": 170,
            "height": {"step": 20},
            "layer": [
                interval("x", y=y),
                {
                    "mark": {"type": "point", "filled": True, "size": 60, "color": MORE},
                    "encoding": {
                        "y": y,
                        "x": field("value", "Q", ""),
                        "tooltip": tooltips(COLUMNS),
                    },
                },
            ],
        },
    )
