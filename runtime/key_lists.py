"""An order or a choice of passages as a step's output: their keys, best first, as a JSON list."""

import json
from collections.abc import Iterable

from hopscope.runtime.texts.literals import json_value
from hopscope.runtime.types import Passage


def write(passages: Iterable[Passage]) -> str:
    """The output of a step that ranks or chooses passages."""
    return json.dumps([passage.key for passage in passages], ensure_ascii=False)


def read(output: str | None) -> tuple[str, ...] | None:
    """The keys in a step's output; None if it is no list of keys, such as a model's reply."""
    try:
        keys = json_value(output or "")
    except ValueError:
        return None
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        return None
    return tuple(keys)
