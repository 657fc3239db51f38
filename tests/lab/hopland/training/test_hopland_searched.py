"""Contexts that a search found: what they hold and what is asked over them."""

import random

import pytest

from hopscope.lab.hopland import world
from hopscope.lab.hopland.contexts import Mix
from hopscope.lab.hopland.names import Forge
from hopscope.lab.hopland.training.searched import MOST, Searched
from hopscope.lab.hopland.world import FIXED_FACTS

MIX = Mix((5,), (("1", 1.0), ("2", 2.0)), reasoning=0.5, missing=0.2, broken=0.2)


@pytest.fixture(scope="module")
def drawn() -> Searched:
    rng = random.Random(4)
    made = world.make(4, split="train", scale=40, density="sparse")
    return Searched(made, rng, Forge(rng, "train", world.RESERVED))


def test_the_first_two_questions_ask_for_the_chain_that_was_searched_for(drawn: Searched) -> None:
    for _ in range(40):
        example = drawn.example(MIX)
        short, long, *_ = example.asked
        assert [turn.kind for turn in example.turns[:2]] == ["answer", "reasoned"]
        assert short.steps == long.steps
        assert example.turns[0].absent == example.turns[1].absent


def test_a_question_lacks_evidence_exactly_when_no_shown_passage_tells_a_step(
    drawn: Searched,
) -> None:
    missing = 0
    for _ in range(60):
        example = drawn.example(MIX)
        known = {fact for facts in example.told for fact in facts} | set(FIXED_FACTS.values())
        for asked, turn in zip(example.asked, example.turns, strict=True):
            assert turn.absent == any(step not in known for step in asked.steps)
        missing += example.turns[0].absent
    assert 0 < missing < 60


def test_what_a_search_finds_shares_words_with_the_chain(drawn: Searched) -> None:
    """That is what makes these contexts hard: names that nearly coincide."""
    alike = shown = 0
    for _ in range(60):
        facts = drawn.walk(2)
        chain = {word for f in facts for name in (f.subject, f.object) for word in name.split()}
        gold = {drawn.world.telling_of[f] for f in facts}
        for place in drawn.found(facts):
            if place not in gold:
                title = drawn.world.tellings[place].passage.title
                shown += 1
                alike += bool((chain - {"of"}) & set(title.split()))
    assert alike / shown > 0.4


def test_a_context_has_no_passage_twice_and_not_too_many(drawn: Searched) -> None:
    for _ in range(60):
        shown = drawn.example(MIX).passages
        assert len({p.id for p in shown}) == len(shown) <= MOST
