"""Where a mark of a picture leads, and its row in the table behind: to its runs, or to its step."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

NUMBERED = re.compile(r"(\d+)\b")
"""The name of a step begins with its number."""


def of_run(row: Mapping[str, Any]) -> str | None:
    """The step of a row of a run's picture, on the same page."""
    names = (row.get(key) for key in ("step", "part", "row"))
    found = next((NUMBERED.match(name) for name in names if isinstance(name, str)), None)
    return f"#step-{found[1]}" if found else None


def of_experiment(experiment: str, row: Mapping[str, Any]) -> str | None:
    """The runs of a row of an experiment's picture."""
    if row.get("run"):
        return f"/runs/{quote(row['run'], safe='')}"
    if row.get("error"):
        chosen = {key: row[key] for key in ("error", "step", "hops")}
        return f"/failures/{quote(experiment, safe='')}?{urlencode(chosen)}"
    if row.get("system"):
        return "/?" + urlencode({"experiment": experiment, "arm": row["system"]})
    return None
