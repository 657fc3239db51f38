"""What is read out of judgments and rankings, whatever a model writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.judgments.permutation import permutation
from hopscope.runtime.judgments.selection import necessary_information, selection, verdict

MARKERS = ["My selection", "selection", ":", "My judgment: ", "Necessary information: "]
SIGNS = ["[[", "]]", "[", "]", ",", " > ", "\n", "Yes", "no"]
DIGITS = ["0", "1", "3", "-2", "99", "٣", "²", "9" * 5000]
REPLIES = st.text() | st.lists(st.sampled_from([*MARKERS, *SIGNS, *DIGITS])).map("".join)


@pytest.mark.parametrize(
    ("reply", "positions", "ok"),
    [
        ("My selection:[[2],[5]].", {2, 5}, True),
        ("Answer: [2], My selection:[[3]]", {3}, True),
        ("[[0],[3],[3],[99]]", {3}, False),
    ],
)
def test_vector_18_the_selection_follows_its_marker(
    reply: str, positions: set[int], ok: bool
) -> None:
    assert (set(selection(reply, 10).positions), selection(reply, 10).ok) == (positions, ok)


@pytest.mark.parametrize(
    ("reply", "positions", "ok"),
    [
        ("My selection: 2 and 5.", (2, 5), True),
        ("My selection: [2, 5]", (2, 5), True),
        ("MY SELECTION:\n- [ 5 ]\n- [2]", (5, 2), True),
        ("My selection:[[4]]. This selection is what I would read.", (4,), True),
        ("My selection:[].", (), True),
        ("My selection: [[]]", (), True),
        ("My selection: none of them.", (), False),
        ("My selection:[[0]].", (), False),
        ("My selection:[[11],[12]].", (), False),
        ("My selection:[[" + "9" * 5000 + "]]", (), False),
        ("[[2],[5]]", (2, 5), False),
        ("I cannot tell.", (), False),
        ("", (), False),
    ],
)
def test_a_selection_is_read_from_what_models_really_write(
    reply: str, positions: tuple[int, ...], ok: bool
) -> None:
    """ "[0]" must not become the last passage, as index -1 would."""
    assert selection(reply, 10) == (positions, ok)


def test_numbers_in_an_answer_are_no_selection() -> None:
    """UJ-ExpA writes an answer first: "12 men" must not select passage 12."""
    assert selection("Answer: 12 men", 20, after_text=True) == ((), False)
    assert selection("Answer: 12 men\nMy selection:[[3]]", 20, after_text=True) == ((3,), True)


@pytest.mark.parametrize(
    ("reply", "useful"),
    [
        ("My judgment: Yes, it names the director.", True),
        ("My judgment: No, it has none.", False),
        ("Answer: no one. My judgment: **Yes**", True),
        ("My judgement: yes", True),
        ("My judgment: Yes. This judgment rests on its title.", True),
        ("Yes, he did. My judgment: it may help.", None),
        ("Yes.", True),
        ("NO", False),
        ("Yesterday it rained.", None),
        ("It is useful, yes.", None),
        ("", None),
    ],
)
def test_a_verdict_begins_with_yes_or_no(reply: str, useful: bool | None) -> None:
    assert verdict(reply) is useful


@pytest.mark.parametrize(
    ("reply", "n", "positions", "ok"),
    [
        ("[3] > [1] > [1] > [9]", 4, (3, 1, 2, 4), True),
        ("[3] > [1]", 4, (3, 1, 2, 4), True),
        ("The 2 best of the 4 are [3] > [1].", 4, (3, 1, 2, 4), True),
        ("3 > 1", 4, (3, 1, 2, 4), True),
        ("[0] > [2]", 3, (2, 1, 3), True),
        ("All are good.", 3, (1, 2, 3), False),
        ("", 3, (1, 2, 3), False),
        ("[1]", 0, (), False),
    ],
)
def test_vector_19_and_others_a_ranking_is_completed(
    reply: str, n: int, positions: tuple[int, ...], ok: bool
) -> None:
    assert permutation(reply, n) == (positions, ok)


@pytest.mark.parametrize(
    ("reply", "information"),
    [
        ("Necessary information: [who directed it]", "who directed it"),
        ("Sure. necessary information:\n the year", "the year"),
        ("The year.", None),
        ("", None),
    ],
)
def test_an_implicit_answer_follows_its_marker(reply: str, information: str | None) -> None:
    assert necessary_information(reply) == information


@given(REPLIES, st.integers(0, 20), st.booleans())
def test_any_reply_selects_within_the_list(reply: str, n: int, after_text: bool) -> None:
    positions, ok = selection(reply, n, after_text=after_text)
    assert set(positions) <= set(range(1, n + 1))
    assert len(positions) == len(set(positions))
    assert ok or not positions or not after_text


@given(REPLIES, st.integers(0, 20))
def test_any_reply_gives_a_permutation(reply: str, n: int) -> None:
    assert sorted(permutation(reply, n).positions) == list(range(1, n + 1))


@given(st.permutations(range(1, 9)))
def test_a_ranking_in_the_form_asked_for_is_read_as_it_stands(order: list[int]) -> None:
    assert permutation(" > ".join(f"[{i}]" for i in order), 8) == (tuple(order), True)


@given(st.sets(st.integers(1, 20)))
def test_a_selection_in_the_form_asked_for_is_read_as_it_stands(wanted: set[int]) -> None:
    listed = ",".join(f"[{i}]" for i in sorted(wanted))
    assert selection(f"My selection:[{listed}].", 20) == (tuple(sorted(wanted)), True)


@given(REPLIES)
def test_any_reply_has_a_verdict_or_none(reply: str) -> None:
    assert verdict(reply) in (True, False, None)
    necessary_information(reply)
