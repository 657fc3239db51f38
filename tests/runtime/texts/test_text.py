import pytest

from hopscope.runtime.texts.continuation import extract_answer, first_sentence


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("So the answer is: Walls and Bridges.", "Walls and Bridges"),
        ("Answer is X.", None),
        ("x answer is: a. So the answer is: b.", "b"),
        ("So the answer is:", None),
        ("", None),
    ],
)
def test_vector_22_the_last_marker_on_the_line_gives_the_answer(
    text: str, answer: str | None
) -> None:
    assert extract_answer(text) == answer


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("  The U.S. economy grew. It was 1912.", "The U.S. economy grew."),
        ("One only", "One only"),
        ("  ", ""),
        ("Dr. Kay met J. R. Smith. Then he left.", "Dr. Kay met J. R. Smith."),
    ],
)
def test_the_first_sentence_survives_abbreviations(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence
