"""Normalised answers and string metrics. Vectors 21 and 23 of the specification are in here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.texts.answers import (
    accuracy,
    contains,
    distinct,
    exact_match,
    normalise,
    normalise_all,
    rouge_l,
    token_f1,
)


@pytest.mark.parametrize(
    ("answer", "squad", "spaced"),
    [
        ("The U.S.", "us", "u s"),
        ("  An  apple, a pear ", "apple pear", "apple pear"),
        ("O'Keeffe", "okeeffe", "o keeffe"),
        ("The", "", ""),
    ],
)
def test_normalisers_differ_in_punctuation(answer: str, squad: str, spaced: str) -> None:
    assert normalise(answer) == squad
    assert normalise(answer, "spaced") == spaced


@given(st.lists(st.text() | st.sampled_from(["The ΑΣ.", "a\nb", "an\u2028the", ""])))
def test_texts_are_normalised_together_as_one_by_one(texts: list[str]) -> None:
    together = normalise_all(tuple(texts))
    assert together == tuple(normalise(text) for text in texts)


@pytest.mark.parametrize(
    ("text", "gold", "expected"),
    [
        ("Parisian", "paris", False),
        ("anything", "The", False),
        ("U.S. economy", "US", True),
        ("in Paris.", "Paris", True),
        ("", "Paris", False),
    ],
)
def test_containment_respects_words_and_empty_golds(text: str, gold: str, expected: bool) -> None:
    """EoR's regular expression finds a gold that normalises to nothing in every text."""
    assert contains(text, gold) is expected


def test_accuracy_is_substring_with_the_same_guard() -> None:
    assert accuracy("Parisian", ["paris"]) == 1
    assert accuracy("anything", ["The"]) == 0


def test_exact_match_takes_any_alias_and_gives_an_empty_answer_nothing() -> None:
    assert exact_match("the Beatles!", ["Stones", "Beatles"]) == 1
    assert exact_match("Beatles", ["Stones"]) == 0
    assert exact_match("", ["The"]) == 0


def test_f1_is_the_best_over_golds_and_strict_for_yes_and_no() -> None:
    assert token_f1("Linda Davis", ["Davis", "Reba"]) == pytest.approx(2 / 3)
    assert token_f1("yes it is", ["yes"]) == 0
    assert token_f1("Yes.", ["yes"]) == 1
    assert token_f1("", ["x"]) == 0
    assert token_f1("x", []) == 0


def test_distinct_golds_drop_blanks_and_repetitions() -> None:
    assert distinct(["Paris", "paris.", " ", "the Paris", "Rome"]) == ("Paris", "Rome")
    assert distinct(["The The", "The"]) == ("The", "The The")


@given(st.lists(st.sampled_from(["Paris", "paris", "The Paris", "Rome", "The", ""])), st.randoms())
def test_distinct_golds_do_not_depend_on_order_or_repetition(golds: list[str], rng: object) -> None:
    shuffled = golds + golds[:2]
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert distinct(shuffled) == distinct(golds)


def test_vector_21_rouge_l() -> None:
    assert rouge_l("the cat sat on the mat", "the cat is on the mat") == pytest.approx(5 / 6)


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [("", "", 0), ("a", "", 0), ("?!", "?!", 0), ("a b", "B, a", 0.5), ("Zoë", "zoë!", 1)],
)
def test_rouge_l_of_short_texts(one: str, other: str, value: float) -> None:
    """`rouge` raises on empty texts; `rouge-score` drops letters outside ASCII."""
    assert rouge_l(one, other) == pytest.approx(value)


@given(st.text(), st.text())
def test_rouge_l_is_symmetric_and_at_most_one(one: str, other: str) -> None:
    assert 0 <= rouge_l(one, other) <= 1
    assert rouge_l(one, other) == pytest.approx(rouge_l(other, one))
