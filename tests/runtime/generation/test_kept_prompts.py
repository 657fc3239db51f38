"""Tokens of prompts that are asked for again."""

from collections.abc import Callable

from hopscope.runtime.generation.texts import rendering
from hopscope.runtime.generation.texts.rendering import Kept
from hopscope.runtime.types import Message, Prompt


def prompt(text: str) -> Prompt:
    return Prompt(messages=(Message(role="user", content=text),))


def rendering_to(ids: list[int], made: list[int]) -> Callable[[], list[int]]:
    def render() -> list[int]:
        made.append(len(ids))
        return ids

    return render


def test_a_prompt_is_rendered_once_for_each_thought() -> None:
    kept, made = Kept(), list[int]()
    for _ in range(2):
        assert kept.get(prompt("a"), None, rendering_to([1, 2], made)) == [1, 2]
        assert kept.get(prompt("a"), "", rendering_to([1, 2, 3], made)) == [1, 2, 3]
    assert made == [2, 3]


def test_what_a_caller_does_with_the_tokens_stays_with_it() -> None:
    kept = Kept()
    kept.get(prompt("a"), None, lambda: [1, 2]).append(9)
    kept.get(prompt("a"), None, lambda: [0]).pop()
    assert kept.get(prompt("a"), None, lambda: [0]) == [1, 2]


def test_the_prompts_used_last_are_kept_up_to_so_many_tokens() -> None:
    kept, made = Kept(), list[int]()
    half = [0] * (rendering.KEPT // 2)
    for text in ("a", "b", "a", "c"):
        kept.get(prompt(text), None, rendering_to(half, made))
    assert len(made) == 3
    kept.get(prompt("a"), None, rendering_to(half, made))
    assert len(made) == 3  # used after b
    kept.get(prompt("b"), None, rendering_to(half, made))
    assert len(made) == 4


def test_a_prompt_longer_than_all_that_is_kept_is_rendered_anew() -> None:
    kept, made = Kept(), list[int]()
    for _ in range(2):
        assert len(kept.get(prompt("a"), None, rendering_to([0] * (rendering.KEPT + 1), made))) > 0
    assert len(made) == 2
