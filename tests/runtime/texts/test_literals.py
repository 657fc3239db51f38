"""JSON, TOML and whole numbers of others are read, or refused in words."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import hopscope
from hopscope.runtime.texts.literals import json_at, json_value, toml_table, whole_number

ROOT = Path(hopscope.__file__).parent
RAW = re.compile(r"\bjson\.loads?\(|\btomllib\.loads?\(|\braw_decode\(")
OURS = {
    "api/presets/__init__.py": "files of this package",
    "api/services/langfuse.py": "what `begin` of the same module has written",
    "api/services/phoenix.py": "what `begin` of the same module has written",
    "lab/hopland/training/search_agent.py": "files of our own training",
    "lab/hopland/training/tokenizer.py": "files of our own training",
    "runtime/corpora/hopland.py": "files of this package",
    "runtime/prompting/tool_calls.py": "messages that the same module has written",
    "runtime/retrievers/lucene/_anserini.py": "what Lucene answers this process",
    "runtime/texts/literals.py": "the one place",
    "store/database/columns.py": "the database's own",
    "store/traces/spool.py": "what the same module has written",
    "tracing/pairs/kept_entailment.py": "what the same module has written",
    "workflows/react/conversation.py": "messages of our own prompts",
}
"""Modules that parse without `literals`, and why they may."""


@pytest.mark.parametrize(
    "read", [json_value, lambda text: json_at(text, 0), lambda text: toml_table(f"x = {text}")]
)
def test_what_python_cannot_hold_is_refused_in_words(read: Callable[[str], object]) -> None:
    """Both ended commands as unexpected errors, without a file or a line."""
    with pytest.raises(ValueError, match=r"^(JSON|TOML) that is nested too deep$"):
        read("[" * 99_999 + "]" * 99_999)
    with pytest.raises(ValueError, match=r"^a number with more than 4,300 digits$"):
        read("9" * 5000)
    with pytest.raises(ValueError, match="line 1"):
        read("?")
    assert read("[1, 2]") in ([1, 2], ([1, 2], 6), {"x": [1, 2]})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-5", -5),
        ("007", 7),
        ("9" * 18, 10**18 - 1),
        *((text, None) for text in ("", "-", "--5", "+5", "5.", "1_0", " 5", "9" * 19, "9" * 5000)),
        *((text, None) for text in ("\u0665", "\u00b2")),
    ],
)
def test_a_whole_number_is_spelled_by_few_digits(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_texts_of_others_are_parsed_in_one_place() -> None:
    """So that none is parsed by a function whose errors nobody expects."""
    found = {
        f"{room}/{path.relative_to(ROOT / room).as_posix()}"
        for room in ("api", "cli", "lab", "runtime", "store", "tracing", "view", "workflows")
        for path in (ROOT / room).rglob("*.py")
        if RAW.search(path.read_text(encoding="utf-8"))
    }
    assert found == OURS.keys()
