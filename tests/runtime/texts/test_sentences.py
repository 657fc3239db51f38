"""Sentences and pieces of text lose no character, whatever a model wrote."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hopscope.runtime.texts import sentences
from hopscope.runtime.texts.answers import normalise
from hopscope.runtime.texts.continuation import continued, first_sentence, sentence_end

PIECES = [
    "U.S.",
    "Dr. ",
    "a",
    "B. ",
    "\n",
    "?! ",
    '"',
    "(",
    ")",
    "1. ",
    "...",
    "\r",
    "5.3",
    "∯",
    "∮",
]


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES)).map("".join)))
@example("∮")
@example("∯\rU.S.")
def test_the_first_sentence_is_the_beginning_of_the_text(text: str) -> None:
    """pysbd marks stops with rare signs of its own and trips over them in a text: IRCoT raised
    IndexError at "∮"."""
    sentence = first_sentence(text)
    assert text.strip().startswith(sentence)
    assert bool(sentence) == bool(text.strip())


@given(st.text(alphabet="ab.?! \n1", max_size=40), st.integers(1, 9))
def test_a_sentence_has_its_least_length_or_is_all_there_is(text: str, least: int) -> None:
    end = sentence_end(text, least=least)
    assert len(text[:end].strip()) >= least or not text[end:].strip()


@pytest.mark.parametrize(
    ("text", "least", "end"),
    [
        (" Yes. It is. So", 1, 5),
        (" Yes. It is. So", 5, 12),
        ("No end  ", 1, 6),
        ("", 1, 0),
        ("∯\rU.S.", 2, 6),
    ],
)
def test_where_a_sentence_ends(text: str, least: int, end: int) -> None:
    assert sentence_end(text, least=least) == end


@pytest.mark.parametrize(
    ("text", "piece", "whole"),
    [
        ("One.", " Two.", "One. Two."),
        ("One.", "Two.", "One. Two."),
        ("One. ", "Two.", "One. Two."),
        ("One.\n", " Two.", "One.\n Two."),
        ("Mis", "kel", "Miskel"),
        ("", " Two.", " Two."),
        ("One.", "", "One."),
    ],
)
def test_a_piece_is_set_off_from_a_finished_sentence(text: str, piece: str, whole: str) -> None:
    assert continued(text, piece) == whole


def test_answers_are_the_same_up_to_case_articles_and_punctuation() -> None:
    assert normalise("The  U.S. an Economy!") == "us economy"
    assert normalise("A") == normalise("") == ""


def test_threads_split_in_turn() -> None:
    """pysbd keeps the text that it splits in the splitter."""
    texts = [f"{'Word ' * n}ends here. Then {n} more follow." * 3 for n in range(1, 33)]
    expected = [list(sentences.spans(text)) for text in texts]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda text: list(sentences.spans(text)), texts * 2))
    finally:
        sys.setswitchinterval(interval)
    assert found == expected * 2
