"""The table in the module's docstring, line by line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.ports import Statement
from hopscope.tracing.entailments import lexical


def relate(premise: str, hypothesis: str) -> tuple[float, float, float]:
    return tuple(lexical.build().classify([Statement("Where?", premise, hypothesis)])[0])


SAME, CONTAINED, NEUTRAL, UNCLEAR, OTHER = (
    (1.0, 0.0, 0.0),
    (0.9, 0.1, 0.0),
    (0.0, 1.0, 0.0),
    (0.0, 0.5, 0.5),
    (0.0, 0.0, 1.0),
)


@pytest.mark.parametrize(
    ("premise", "hypothesis", "expected"),
    [
        ("", "Lisbon", NEUTRAL),
        ("The", "Lisbon", NEUTRAL),
        ("The", "the", SAME),
        ("", "", NEUTRAL),
        ("Yes.", "yes", SAME),
        ("No, they are not", "no", SAME),
        ("no", "yes", OTHER),
        ("yes", "Lisbon", NEUTRAL),
        ("No Country for Old Men", "no", NEUTRAL),
        ("No idea", "no", NEUTRAL),
        ("the U.S.", "US", SAME),
        ("São Paulo", "Sao Paulo", SAME),
        ("two", "2", SAME),
        ("1,000", "1000", SAME),
        ("3.5", "35", OTHER),
        ("not Lisbon", "Lisbon", OTHER),
        ("It isn’t Lisbon", "Lisbon", OTHER),  # noqa: RUF001
        ("born in Lisbon in 1951", "Lisbon", CONTAINED),
        ("12 May 1951", "1951", CONTAINED),
        ("Parisian", "Paris", OTHER),
        ("5 million", "5", UNCLEAR),
        ("5%", "5", UNCLEAR),
        ("1950s", "1950", OTHER),
        ("Lisbon", "Lisbon, Portugal", NEUTRAL),
        ("1951", "1952", OTHER),
        ("12 May 1951", "12 May 1952", OTHER),
        ("Bruno Costa", "Bruno Silva", UNCLEAR),
        ("Bruno Costa", "Ana Silva", OTHER),
    ],
)
def test_table(premise: str, hypothesis: str, expected: tuple[float, float, float]) -> None:
    assert relate(premise, hypothesis) == expected


@given(st.text(), st.text())
def test_any_two_texts_have_a_distribution(premise: str, hypothesis: str) -> None:
    assert sum(relate(premise, hypothesis)) == pytest.approx(1)


@given(st.text().filter(str.strip))
def test_a_text_entails_itself_or_is_symbols_only(text: str) -> None:
    assert relate(text, text)[0] == 1
