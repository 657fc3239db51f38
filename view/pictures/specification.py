"""The frame that all pictures share: title, description, data, the table behind them, colours.

Source of the format: Vega-Lite (Satyanarayan et al. 2017).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.storable import brief

Spec = dict[str, Any]
Row = Mapping[str, Any]

MOST = 5_000
"""Marks of a picture; of more rows it shows some, which `spread` chooses."""
GOLDEN = (5**0.5 - 1) / 2
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
MORE, LESS, LEVEL = "#2a78c4", "#d1632a", "#8a8f98"
"""A gain, a loss, and a level. They differ in lightness, too, for eyes that see no red or green."""
DIVERGING = {"scheme": "blueorange", "reverse": True, "domainMid": 0}
LONGEST = 80
"""Characters of a text in a picture; the table behind it holds the same."""


def spread(count: int, most: int) -> list[int]:
    """At most that many of the numbers 0, 1, …, evenly spread, the same ones every time.

    Every n-th would be the same workflow's, where workflows take turns. Multiples of the golden
    ratio keep no step with anything (Weyl 1916).
    """
    if count <= most:
        return list(range(count))
    order = sorted(range(count), key=lambda number: number * GOLDEN % 1)
    return sorted(order[:most])


def specification(
    title: str, description: str, rows: Sequence[Row], headings: Mapping[str, str], **body: Any
) -> Spec:
    """A Vega-Lite specification of these rows.

    Args:
        description: what the picture shows, for who cannot see it.
        headings: of the table behind the picture, by key of the rows.
        body: marks and encodings: `mark` and `encoding`, or `layer`, `facet`, ....

    Raises:
        UsageError: there is nothing to draw, or too much.
    """
    if not rows:
        raise UsageError(f"{title}: there is nothing to draw; {description}")
    if len(rows) > MOST:
        raise UsageError(f"{title}: {len(rows)} marks are more than {MOST}")
    return {
        "$schema": SCHEMA,
        "title": {"text": title, "anchor": "start"},
        "description": description,
        "data": {"values": [_plain(row) for row in rows]},
        "usermeta": {"columns": dict(headings)},
        "config": {
            "font": "sans-serif",
            "view": {"stroke": None},
            "axis": {"grid": False, "labelLimit": 320},
            "axisQuantitative": {"grid": True, "gridOpacity": 0.3},
        },
        **body,
    }


def table(spec: Spec) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The headings and rows of the table behind a picture."""
    columns: dict[str, str] = spec["usermeta"]["columns"]
    return columns, spec["data"]["values"]


def field(name: str, kind: str, title: str | None = None, **more: Any) -> Spec:
    """The encoding of a field. `kind` is Q (quantitative), N (nominal) or O (ordinal)."""
    kinds = {"Q": "quantitative", "N": "nominal", "O": "ordinal"}
    return {"field": name, "type": kinds[kind], "title": title, **more}


def tooltips(columns: Mapping[str, str]) -> list[Spec]:
    """Every column of the table, shown where the mouse is."""
    return [{"field": name, "title": heading} for name, heading in columns.items()]


def interval(axis: str, low: str = "low", high: str = "high", **encoding: Any) -> Spec:
    """A layer with the 95 % intervals of rows that have one."""
    return {
        "transform": [{"filter": f"isValid(datum.{low}) && isValid(datum.{high})"}],
        "mark": {"type": "rule", "size": 1.5, "color": "#555"},
        "encoding": {
            **encoding,
            axis: field(low, "Q"),
            f"{axis}2": {"field": high},
        },
    }


def readable(dark: str) -> Spec:
    """The colour of text on a cell: white where the cell is dark, by a Vega expression."""
    return {"condition": {"test": dark, "value": "white"}, "value": "#111"}


def short(text: str | None, longest: int = LONGEST) -> str:
    """Text on one line, without control characters, cut with a mark."""
    return brief(text or "", longest)


def _plain(row: Row) -> dict[str, Any]:
    return {key: short(value) if isinstance(value, str) else value for key, value in row.items()}
