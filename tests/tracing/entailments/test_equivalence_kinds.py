"""Kinds of answer that the embedded model misjudged: made-up pairs, right and wrong, of each."""

from functools import cache
from pathlib import Path

import pytest

from hopscope.tracing.entailments import equivalence
from hopscope.tracing.entailments.equivalence.times import Relation, only_times, relation, times
from hopscope.tracing.entailments.equivalence.words import Text
from hopscope.tracing.scoring.correctness import Answered

PAIRS = Path(__file__).with_name("made_up_pairs.txt")
KINDS = [
    "glued",
    "footnoted",
    "ranges",
    "decimals",
    "rounded",
    "centuries",
    "year_of_date",
    "wrong_alias",
    "list_item",
    "opposite",
    "mentioned",
    "echo",
    "names",
    "signs",
    "units",
    "initials",
]
LEAST = 0.9
"""The share of each kind that must be judged rightly."""


@cache
def pairs() -> dict[str, list[tuple[Answered, bool]]]:
    found: dict[str, list[tuple[Answered, bool]]] = {}
    kind = ""
    for line in PAIRS.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            kind = line[3:].partition(":")[0]
        elif line and not line.startswith("#"):
            question, golds, answer, right = line.split(" | ")
            asked = Answered(question, tuple(golds.split("/")), answer)
            found.setdefault(kind, []).append((asked, right == "+"))
    return found


def test_every_kind_has_ten_pairs_of_both_sorts() -> None:
    assert list(pairs()) == KINDS
    for kind, rows in pairs().items():
        rights = [right for _, right in rows]
        assert len(rows) >= 10, kind
        assert 3 <= sum(rights) <= len(rows) - 3, kind


@pytest.mark.parametrize("kind", KINDS)
def test_nine_of_ten_pairs_are_judged_rightly(kind: str) -> None:
    """Of most kinds half were wrong before answers were read beside the golds."""
    rows = pairs()[kind]
    chances = equivalence.build().correctness([asked for asked, _ in rows])
    wrong = [
        (asked, chance)
        for (asked, right), chance in zip(rows, chances, strict=True)
        if (chance > 0.5) is not right
    ]
    assert len(wrong) <= (1 - LEAST) * len(rows), wrong


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("14 February 2018", "2018", Relation.AGREES),
        ("2018", "14 February 2018", Relation.AGREES),
        ("February 2018", "14 February 2018", Relation.AGREES),
        ("March 2018", "14 February 2018", Relation.APART),
        ("26 January", "18 January 1788", Relation.APART),
        ("18 January", "18 January 1788", Relation.AGREES),
        ("1788", "18 January", Relation.UNCLEAR),
        ("950", "mid-10th century", Relation.AGREES),
        ("10th century", "mid-10th century", Relation.AGREES),
        ("9th century", "mid-10th century", Relation.APART),
        ("the 1800s", "the 19th century", Relation.AGREES),
        ("19th century", "1853", Relation.UNCLEAR),
        ("44 BC", "44 AD", Relation.APART),
        ("the sixties", "the 1960s", Relation.AGREES),
        ("late in the 14th century", "early 14th century", Relation.APART),
    ],
)
def test_times_are_compared(one: str, other: str, expected: Relation) -> None:
    [answer], [gold] = (times(Text(text).words) for text in (one, other))
    assert relation(answer, gold) is expected


def test_only_words_of_time_make_a_time() -> None:
    for text, whole in [
        ("in May 1999", True),
        ("May 1999 in Lisbon", False),
        ("it may be", False),
        ("from 1632 to 1653", True),
        ("26 ships", False),
    ]:
        words = Text(text).words
        assert only_times(words, times(words)) is whole, text


@pytest.mark.parametrize(
    ("golds", "answer", "read_as"),
    [
        (("1813",), "opened in18131.", "opened in 1813"),
        (("Q and Z",), "They areQandZ", "they are q and z"),
        (("224.7 days",), "about 225 days", "about 224.7 days"),
        (("14 February 2018",), "in 2018", "in 14 february 2018"),
        (("William Harrow",), "Bill Harrow", "william harrow"),
        (("Gtterdmmerung",), "Götterdämmerung", "gtterdmmerung"),
        (("United Kingdom",), "in Great Britain", "in united kingdom"),
        (("William Harrow",), "William Harrow", None),
        (("William Harrow",), "the bill", None),
        (("2014",), "2015", None),
    ],
)
def test_a_reading_is_told(golds: tuple[str, ...], answer: str, read_as: str | None) -> None:
    told = equivalence.build().explain(Answered("What is it?", golds, answer))
    assert told.read_as == read_as


def test_a_reading_depends_on_the_question() -> None:
    """How many is no year, and who asks for a day is not content with a year."""
    model = equivalence.build()
    for question, golds, answer in [
        ("How many people came?", ("2014",), "20141"),
        ("On what date did it open?", ("14 February 2018",), "2018"),
    ]:
        assert model.explain(Answered(question, golds, answer)).read_as is None


@pytest.mark.parametrize(
    ("question", "golds", "answer", "rule"),
    [
        ("When did it open?", ("May 1950", "1950"), "June 1950", "another time"),
        ("Which two?", ("Ana & Bruno",), "Ana", None),
        ("Which two sons came?", ("Ana & Bruno",), "Ana", "a part of the list"),
        ("Which rule?", ("direct rule",), "indirect rule", "the opposite"),
        ("Who won?", ("Lund",), "Hallam, who defeated Lund", "only mentions it"),
        ("Whom did Hallam defeat?", ("Lund",), "Hallam defeated Lund", None),
        ("Who built the hall?", ("Royd",), "the hall", "repeats the question"),
        ("Who is older, Ian Harrow or Tom Reeve?", ("Ian John Harrow",), "Ian Harrow", None),
        ("Who wrote it?", ("J. M. Oduya",), "Karl Oduya", "other initials"),
        ("Which country?", ("the UK",), "the United States", "another place"),
        ("Which country?", ("the UK",), "Italy", None),
        ("Lumium is a metal?", ("False",), "Lumium is not a metal.", "says no"),
        ("Lumium is a metal?", ("False",), "Lumium is a metal.", "says yes"),
    ],
)
def test_rules_apply_where_they_should(
    question: str, golds: tuple[str, ...], answer: str, rule: str | None
) -> None:
    assert equivalence.build().explain(Answered(question, golds, answer)).rule == rule
