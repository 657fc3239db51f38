"""An order or a choice of passages as a step's output: their keys, best first, as a JSON list."""

import json
from collections.abc import Iterable

from hopscope.runtime.types import Passage


def write(passages: Iterable[Passage]) -> str:
    """The output of a step that ranks or chooses passages."""
    return json.dumps([passage.key for passage in passages], ensure_ascii=False)


def read(output: str | None) -> tuple[str, ...] | None:
    """The keys in a step's output; None where it is anything else, such as a model's own words."""
    try:
        found = json.loads(output or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(key, str) for key in found):
        return None
    return tuple(found)
