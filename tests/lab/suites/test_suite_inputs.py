"""What suites are given: questions whose truth is known, from a seed."""

import pytest

from hopscope.lab.suites import worlds
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.answers import contains
from hopscope.runtime.types import Passage
from tests.fakes import ScriptedReader


@pytest.fixture(scope="module")
def inputs() -> SuiteInputs:
    return worlds.make(ScriptedReader([]), seed=7, limit=20)


def telling(inputs: SuiteInputs, passages: tuple[Passage, ...]) -> set[object]:
    keys = {passage.key for passage in passages}
    assert isinstance(inputs.source, worlds.GeneratedWorld)
    return {f for t in inputs.source.world.tellings if t.passage.key in keys for f in t.facts}


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_question_follows_from_its_gold_passages_and_needs_each(
    inputs: SuiteInputs, hops: int
) -> None:
    for item in inputs.questions(hops):
        told = telling(inputs, item.gold)
        assert set(item.facts) <= told
        assert len({passage.key for passage in item.gold}) == item.hops == hops
        for one, after in zip(item.facts, item.facts[1:], strict=False):
            assert one.object == after.subject
        for without in item.gold:
            rest = tuple(passage for passage in item.gold if passage != without)
            assert not set(item.facts) <= telling(inputs, rest)
            assert item.holds((*rest, *inputs.unrelated(item, 1))) == (hops - 1) / hops
        assert item.question.answers == (item.facts[-1].object,)


def test_the_first_questions_are_the_same_whatever_the_limit(inputs: SuiteInputs) -> None:
    questions = [item.question for item in inputs.questions(2)]
    assert [item.question for item in inputs.questions(2, 5)] == questions[:5]
    assert len({question.text for question in questions}) == 20
    again = worlds.make(ScriptedReader([]), seed=7, limit=1)
    assert [item.question for item in again.questions(2)] == questions[:1]
    other = worlds.make(ScriptedReader([]), seed=8, limit=1)
    assert [item.question for item in other.questions(2)] != questions[:1]


def test_what_stands_beside_the_gold_does_not_help(inputs: SuiteInputs) -> None:
    for item in inputs.questions(1):
        found = inputs.distractors(item, 3)
        [ranked] = inputs.retriever.search([item.question.text], k=50)
        assert len(found) == 3
        assert [hit.passage for hit in ranked if hit.passage in found] == list(found)
        for passage in (*found, *inputs.unrelated(item, 3)):
            assert passage not in item.gold
            assert not contains(f"{passage.title} {passage.text}", item.answer)
        assert inputs.unrelated(item, 3)[:1] == inputs.unrelated(item, 1)


def test_an_order_is_of_the_same_passages(inputs: SuiteInputs) -> None:
    [item] = inputs.questions(1, 1)
    passages = inputs.unrelated(item, 8)
    ordered = inputs.shuffled(item, passages)
    assert ordered != passages
    assert set(ordered) == set(passages)
    assert inputs.shuffled(item, passages) == ordered


def test_more_questions_than_the_world_holds(inputs: SuiteInputs) -> None:
    with pytest.raises(UsageError, match=r"holds [\d,]+ questions of 1 hop, and 1,000,000"):
        inputs.questions(1, 1_000_000)
