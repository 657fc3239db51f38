import pytest

from hopscope.runtime.texts.continuation import (
    extract_answer,
    first_sentence,
    first_sentence_settled,
)


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


REPLIES = [
    "Moon Harbor was directed by Velora Tarn. Velora Tarn was born in Miskel. So it is Miskel.",
    "Dr. Kay met J. R. Smith of the U.S. Army at 5 p.m. on a Monday. Then he left for home.",
    'She wrote "Who? Me." and (in 1912. Or so.) left at once. Nobody of them knew why she did.',
    'He said "Yes. No. Maybe. It is late." and went. After that day he never came back again.',
    "The steps are a. walk there b. come back c. rest a while. So the answer is a long walk.",
    "It is one of 1. Foo and its kin 2. Bar and its kin 3. Baz and its kin. That is all of it.",
    "It costs 3.50 in all. That is 2 more than before. So the answer is: more than before.",
    "Is it (as he said. Or not. Or so. At least later) true? I do not think it is so at all.",
    "She is 'one. of those. who never. know it' and so on. Nobody else would have known it all.",
]


@pytest.mark.parametrize("reply", REPLIES)
def test_a_settled_first_sentence_is_that_of_the_whole_reply(reply: str) -> None:
    settled = [
        first_sentence(reply[:end])
        for end in range(1, len(reply) + 1)
        if first_sentence_settled(reply[:end])
    ]
    assert set(settled) <= {first_sentence(reply)}


def test_two_words_after_a_plain_sentence_settle_it() -> None:
    assert first_sentence_settled("Moon Harbor was directed by Dr. Tarn. Velora T")
    assert not first_sentence_settled("Moon Harbor was directed by Dr. Tarn. Velora ")
    assert not first_sentence_settled("Moon Harbor was directed by Dr. Tarn who l")
    assert not first_sentence_settled('It is "Moon Harbor. By Velora T')
