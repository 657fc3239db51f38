"""Answers of readers in the database, and the reader that asks once."""

from pathlib import Path

import pytest

from hopscope.api import parts
from hopscope.runtime.prompting import prompts
from hopscope.runtime.spans import content, keys
from hopscope.runtime.types import GenerationRequest, Passage, ScoreRequest, Usage
from hopscope.runtime.wrappers.kept_reader import KeptReader
from hopscope.store.answers import Answers
from hopscope.store.store import Store
from tests.fakes import ScriptedReader, reply, scored

COST = Usage(input_tokens=7, output_tokens=2, calls=1)
SAID = reply("gold", (-0.1, -0.2), entropies=(0.3, 0.4), end_logprob=-0.5, usage=COST)
ASKED = GenerationRequest(prompt=prompts.short_answer("Who?"), n=1, seed=3)
OTHER = ASKED.model_copy(update={"seed": 4})


def test_what_was_said_is_not_asked_again(store: Store) -> None:
    """By another process, too: the second reader has nothing but the database."""
    first = KeptReader(ScriptedReader([[SAID], [reply("other")]]), store.answers)
    assert first.generate([ASKED, OTHER])[0] == [SAID]
    silent = ScriptedReader()
    second = KeptReader(silent, store.answers)
    [[again], [other]] = second.generate([ASKED, OTHER])
    assert again == SAID.model_copy(update={"usage": Usage()})
    assert other.text == "other"
    assert silent.generated == []


def test_only_what_is_new_is_asked_for_each_once(store: Store) -> None:
    asked = ScriptedReader([[SAID], [reply("new", usage=COST)]])
    reader = KeptReader(asked, store.answers)
    reader.generate([ASKED])
    replies = reader.generate([OTHER, ASKED, OTHER])
    assert [r[0].text for r in replies] == ["new", "gold", "new"]
    assert [r[0].usage for r in replies] == [COST, Usage(), Usage()]
    assert asked.generated == [[ASKED], [OTHER]]


def test_scores_are_kept_apart_from_replies(store: Store) -> None:
    request = ScoreRequest(prompt=ASKED.prompt, continuation="x")
    told = scored((0.1,), (-0.2,), usage=COST)
    reader = KeptReader(ScriptedReader([], [told]), store.answers)
    assert reader.score([request]) == [told]
    assert reader.score([request]) == [told.model_copy(update={"usage": Usage()})]


@pytest.mark.parametrize(
    "change",
    [{"seed": 9}, {"n": 2}, {"temperature": 0.5}, {"max_tokens": 3}, {"stop": ("a",)}],
)
def test_another_setting_is_another_question(store: Store, change: dict[str, object]) -> None:
    reader = KeptReader(ScriptedReader([[SAID], [reply("other")]]), store.answers)
    reader.generate([ASKED])
    [[other]] = reader.generate([ASKED.model_copy(update=change)])
    assert other.text == "other"


def test_another_model_is_another_question_and_shown_keys_are_not(store: Store) -> None:
    one, other = ScriptedReader([[SAID]]), ScriptedReader([[reply("other")]])
    other.name = "scripted@2"
    KeptReader(one, store.answers).generate([ASKED])
    assert KeptReader(other, store.answers).generate([ASKED])[0][0].text == "other"
    shown = ASKED.prompt.model_copy(update={"shown": ("key",)})
    asked = ASKED.model_copy(update={"prompt": shown})
    assert KeptReader(ScriptedReader(), store.answers).generate([asked])[0][0].text == "gold"


def test_the_oldest_answers_go(store: Store) -> None:
    answers = Answers(store._database, room=2)
    for key in ("a", "b", "c"):
        answers.put({key: f"said {key}"})
    answers.put({"c": "said again"})
    assert answers.get(["a", "b", "c"]) == {"b": "said b", "c": "said c"}


def test_many_answers_are_found_at_once(store: Store) -> None:
    told = {f"key {i}": f"said {i}\x00" for i in range(1200)}
    store.answers.put(told)
    store.answers.put({})
    assert store.answers.get([*told, "missing"]) == told


def test_a_span_says_that_nothing_was_asked() -> None:
    free = SAID.model_copy(update={"usage": Usage()})
    assert content.reply("m", [free], capture=False)[keys.CACHE_HIT] is True
    assert keys.CACHE_HIT not in content.reply("m", [SAID, free], capture=False)


def test_the_command_line_names_the_database(tmp_path: Path) -> None:
    spec = f"tiny,cache={tmp_path / 'answers.db'}"
    asked = GenerationRequest(
        prompt=prompts.short_answer("Who?", [Passage(text="Alba is a film.")]), max_tokens=5
    )
    [[first]] = parts.reader(spec).generate([asked])
    [[second]] = parts.reader(spec).generate([asked])
    assert first.usage.calls == 1
    assert second == first.model_copy(update={"usage": Usage()})
