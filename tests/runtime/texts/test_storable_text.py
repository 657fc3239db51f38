"""Text that a server, a file or an argument holds can be hashed, stored and printed."""

import json

import pytest

from hopscope.runtime.texts.storable import WORD, bounded, brief, storable, storable_json
from hopscope.runtime.types import Generation, Passage, Question, RunError, digest


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("plain", "plain"),
        ("é 😀 \x00", "é 😀 \x00"),
        ("a\ud800b", "a\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("x\ud83d\ud83d\ude00", "x\ufffd😀"),
        (b"caf\xe9".decode(errors="surrogateescape"), "caf\ufffd"),
    ],
)
def test_half_of_a_surrogate_pair_is_marked_and_the_rest_stays(text: str, stored: str) -> None:
    assert storable(text) == stored
    assert stored.encode()


def test_a_message_keeps_its_lines_and_words_but_for_very_long_ones() -> None:
    assert brief("a\nb\u202e", 9) == "a b"
    assert brief("abcdef", 4) == "abc…"
    said = f"a  file\n  has {'9' * 400}, b"
    assert bounded(said) == f"a  file\n  has {'9' * (WORD - 1)}… b"
    assert bounded("a\tb") == "a\tb"


def test_records_hold_storable_text_whoever_makes_them() -> None:
    """A reader's reply with "\\ud800" went as far as the database and ended the experiment."""
    made = [
        Question(text="\ud800?", answers=("\ud800",), id="\ud800"),
        Passage(id="\ud800", title="\ud800", text="\ud800"),
        Generation(text="\ud800", tokens=("a", "\ud800")),
        RunError(type="E", message="\ud800"),
    ]
    for record in made:
        assert "\ufffd" in record.model_dump_json()
    assert Generation(text="", tokens=("a", "\ud800")).tokens == ("a", "\ufffd")


def test_json_is_mended_at_every_depth() -> None:
    value = json.loads('{"\\ud800": ["\\udc00", {"a": "\\ud83d\\ude00", "b": 1, "c": null}]}')
    mended = {"\ufffd": ["\ufffd", {"a": "😀", "b": 1, "c": None}]}
    assert storable_json(value) == mended


def test_a_hash_is_what_it_was_and_takes_any_text() -> None:
    assert digest("a", "é").startswith("9ad218bf27a0c264")
    assert digest("\ud800") != digest("\ufffd")
