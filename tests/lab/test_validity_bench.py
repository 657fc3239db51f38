"""What suites are given: questions whose truth is known, from a seed."""

import pytest
from fakes import ScriptedReader

from hopscope.lab.validity import _bench
from hopscope.lab.validity._bench import Bench
from hopscope.runtime.answers import contains
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Passage


@pytest.fixture(scope="module")
def bench() -> Bench:
    return _bench.make(ScriptedReader([]), seed=7, limit=20)


def telling(bench: Bench, passages: tuple[Passage, ...]) -> set[object]:
    keys = {passage.key for passage in passages}
    return {f for t in bench.world.tellings if t.passage.key in keys for f in t.facts}


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_question_follows_from_its_gold_passages_and_needs_each(bench: Bench, hops: int) -> None:
    for item in bench.chains(hops):
        told = telling(bench, item.gold)
        assert set(item.facts) <= told
        assert len({passage.key for passage in item.gold}) == item.hops == hops
        for one, after in zip(item.facts, item.facts[1:], strict=False):
            assert one.object == after.subject
        for without in item.gold:
            rest = tuple(passage for passage in item.gold if passage != without)
            assert not set(item.facts) <= telling(bench, rest)
            assert item.holds((*rest, *bench.unrelated(item, 1))) == (hops - 1) / hops
        assert item.question.answers == (item.facts[-1].object,)


def test_the_first_questions_are_the_same_whatever_the_limit(bench: Bench) -> None:
    questions = [item.question for item in bench.chains(2)]
    assert [item.question for item in bench.chains(2, 5)] == questions[:5]
    assert len({question.text for question in questions}) == 20
    again = _bench.make(ScriptedReader([]), seed=7, limit=1)
    assert [item.question for item in again.chains(2)] == questions[:1]
    other = _bench.make(ScriptedReader([]), seed=8, limit=1)
    assert [item.question for item in other.chains(2)] != questions[:1]


def test_what_stands_beside_the_gold_does_not_help(bench: Bench) -> None:
    for item in bench.chains(1):
        found = bench.distractors(item, 3)
        [ranked] = bench.retriever.search([item.question.text], k=50)
        assert len(found) == 3
        assert [hit.passage for hit in ranked if hit.passage in found] == list(found)
        for passage in (*found, *bench.unrelated(item, 3)):
            assert passage not in item.gold
            assert not contains(f"{passage.title} {passage.text}", item.answer)
        assert bench.unrelated(item, 3)[:1] == bench.unrelated(item, 1)


def test_an_order_is_of_the_same_passages(bench: Bench) -> None:
    [item] = bench.chains(1, 1)
    passages = bench.unrelated(item, 8)
    ordered = bench.shuffled(item, passages)
    assert ordered != passages
    assert set(ordered) == set(passages)
    assert bench.shuffled(item, passages) == ordered


def test_more_questions_than_the_world_holds(bench: Bench) -> None:
    with pytest.raises(UsageError, match=r"holds \d+ questions of 1 hops, and 1000000"):
        bench.chains(1, 1_000_000)
