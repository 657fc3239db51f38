"""Fields that several formats share."""

from collections.abc import Mapping, Sequence
from typing import Any

from hopscope.runtime.corpora.records.fields import identity, keys, string
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.types import Question

GOLDS = ("golden_answers", "gold_answers", "gold", "ground_truth", "gts", "answers")
"""Fields that hold right answers; the first present one counts."""
IDS = ("id", "_id", "qid", "question_id")
PROMPTS = ("prompt", "input")
"""Fields that hold a prompt, if no field holds the question."""
_ENDS = ("<|im_end|>", "<|eot_id|>", "\nassistant", "\nAnswer:", "\nAssistant:")
"""Marks that end the question within a prompt."""


def question(value: Mapping[str, Any], *, golds: Sequence[str] = GOLDS) -> Question:
    """The question of a record: its field `question`, else what follows the last `Question:` of its
    prompt.

    Raises:
        MalformedRecordError: there is none.
    """
    text = string(value, "question") or _asked(value)
    if not text.strip():
        raise MalformedRecordError(f"no 'question' among the keys {keys(value)}")
    return Question(text=text.strip(), answers=right(value, golds), id=identity(value, *IDS))


def right(value: Mapping[str, Any], names: Sequence[str] = GOLDS) -> tuple[str, ...]:
    """The right answers of a record; none if it tells none.

    Raises:
        MalformedRecordError: they are no texts.
    """
    name = next((name for name in names if value.get(name) is not None), None)
    return () if name is None else _texts(value[name], name)


def _texts(found: Any, name: str) -> tuple[str, ...]:
    if isinstance(found, Mapping) and "target" in found:  # verl's ground truth
        found = found["target"]
    listed = found if isinstance(found, list) else [found]
    if any(isinstance(each, bool) or not isinstance(each, str | int | float) for each in listed):
        raise MalformedRecordError(f"{name!r} must be a text or a list of texts")
    return tuple(dict.fromkeys(text for text in map(str, listed) if text.strip()))


def _asked(value: Mapping[str, Any]) -> str:
    prompt = next((value[name] for name in PROMPTS if value.get(name)), "")
    if isinstance(prompt, list):  # messages of a chat
        turns = [each for each in prompt if isinstance(each, Mapping)]
        prompt = next((t.get("content") for t in reversed(turns) if t.get("role") == "user"), "")
    if not isinstance(prompt, str):
        return ""
    _, asked, text = prompt.rpartition("Question:")
    for end in _ENDS:
        text = text.partition(end)[0]
    return text if asked else ""
