"""The generator: worlds, names, passages, questions and training examples."""

import random

import pytest

from hopscope.lab.hopland import contexts, world
from hopscope.lab.hopland.contexts import Mix, Sampler
from hopscope.lab.hopland.names import Forge, draw, split_of
from hopscope.lab.hopland.questions import SAME, chain, comparison, yesno
from hopscope.lab.hopland.relations import RELATIONS
from hopscope.lab.hopland.world import FIXED_FACTS, FRESH_KINDS, RESERVED, Fact

EVERYTHING = tuple((s, 1.0) for s in ("1", "2", "3", "4", "comparison", "yesno", "fixed"))


def sampler(seed: int = 1) -> Sampler:
    rng = random.Random(seed)
    made = world.make(seed, split="train")
    return Sampler(made, rng, Forge(rng, "train", RESERVED))


def test_the_same_seed_gives_the_same_world() -> None:
    assert world.make(7, split="train") == world.make(7, split="train")
    assert world.make(7, split="train") != world.make(8, split="train")


def test_training_and_test_worlds_share_no_name() -> None:
    train, test = (
        {
            name
            for seed in range(8)
            for kind in FRESH_KINDS
            for name in world.make(seed, split=split).entities[kind]
        }
        for split in ("train", "test")
    )
    assert train
    assert test
    assert not train & test
    assert not (train | test) & RESERVED


def test_a_name_belongs_to_one_split_whatever_the_process() -> None:
    """`hash` of a string changes from process to process; the split must not."""
    assert split_of("Velora Tarn") == split_of("Velora Tarn")
    rng = random.Random(0)
    names = {draw("person", rng) for _ in range(3000)}
    assert 0.15 < sum(split_of(name) == "test" for name in names) / len(names) < 0.25


def test_names_are_unique_within_a_world() -> None:
    made = world.make(3, split="test", scale=20)
    names = [name for kind in FRESH_KINDS for name in made.entities[kind]]
    assert len(names) == len(set(names))


def test_two_hundred_facts_are_the_same_in_every_world() -> None:
    assert len(FIXED_FACTS) == 200
    made = world.make(1, split="train"), world.make(2, split="test")
    for each in made:
        assert each.facts
        assert each.facts.keys().isdisjoint(FIXED_FACTS), "none has another object"


def test_there_are_at_least_fifteen_relations_with_enough_phrasings() -> None:
    assert len(RELATIONS) >= 15
    for relation in RELATIONS.values():
        assert len(set(relation.phrasings)) >= 4
        assert relation.unseen not in relation.seen
        assert len(relation.questions) >= 2
        for pattern in relation.phrasings:
            assert pattern.count("{s}") == pattern.count("{o}") == 1


def test_each_fresh_fact_stands_in_exactly_one_passage() -> None:
    """Were it told twice, removing the gold passage would not remove the evidence."""
    made = world.make(5, split="test", scale=10, phrasing="mixed")
    told = [fact for t in made.tellings for fact in t.facts if fact in made.facts.values()]
    assert sorted(told, key=str) == sorted(made.facts.values(), key=str)
    for fact in made.facts.values():
        text = made.tellings[made.telling_of[fact]].passage.text
        assert fact.subject in text
        assert fact.object in text


def test_training_worlds_never_use_a_held_out_phrasing() -> None:
    for seed in range(20):
        made = world.make(seed, split="train")
        for telling in made.tellings:
            for fact in telling.facts:
                unseen = RELATIONS[fact.relation].unseen
                assert unseen.format(s=fact.subject, o=fact.object) not in telling.passage.text


def test_a_chain_names_only_its_start_and_reasons_to_its_end() -> None:
    steps = [
        Fact("Moon Harbor", "director", "Velora Tarn"),
        Fact("Velora Tarn", "birthplace", "Miskel"),
    ]
    asked = chain(random.Random(0), steps)
    assert "Moon Harbor" in asked.text
    assert "Velora Tarn" not in asked.text
    assert asked.answer == "Miskel"
    assert asked.reasoning == (
        "Moon Harbor was directed by Velora Tarn. Velora Tarn was born in Miskel. "
        "So the answer is: Miskel."
    )


def test_comparisons_and_yes_no_questions_follow_from_their_facts() -> None:
    rng = random.Random(0)
    old, new = Fact("Moon Harbor", "release_year", "1947"), Fact("Red Fox", "release_year", "1962")
    assert comparison(rng, new, old).answer == "Moon Harbor"
    here, there = (
        Fact("Velora Tarn", "birthplace", "Miskel"),
        Fact("Balin Dor", "birthplace", "Oren"),
    )
    assert yesno(rng, here, there).answer == "no"
    assert yesno(rng, here, Fact("Balin Dor", "birthplace", "Miskel")).answer == "yes"


def test_what_an_example_says_is_present_stands_in_its_passages() -> None:
    drawn = sampler()
    mix = Mix((2, 4, 6), EVERYTHING, reasoning=0.5, missing=0.4, broken=0.4)
    for _ in range(60):
        example = drawn.example(mix)
        told = {f for t in drawn.world.tellings if t.passage in example.passages for f in t.facts}
        for asked, turn in zip(example.asked, example.turns, strict=True):
            known = told | set(FIXED_FACTS.values())
            assert turn.absent == any(step not in known for step in asked.steps)


def test_missing_evidence_is_answered_by_a_name_the_passages_do_not_offer() -> None:
    """Answers taken from the context would teach the reader to guess from what it sees."""
    drawn = sampler()
    mix = Mix((4,), (("1", 1.0), ("2", 1.0)), reasoning=0.0, missing=1.0, broken=1.0)
    offered = 0
    asked_in_all = 0
    for _ in range(60):
        example = drawn.example(mix)
        text = " ".join(p.text for p in example.passages)
        for asked in example.asked:
            # Years and fixed names are few, and a told last hop is said truly.
            if RELATIONS[asked.steps[-1].relation].object in ("person", "company"):
                asked_in_all += 1
                offered += asked.answer in text
    assert asked_in_all > 50
    assert offered / asked_in_all < 0.05


@pytest.mark.parametrize("relation", SAME)
def test_yes_and_no_are_about_as_frequent(relation: str) -> None:
    """A lopsided prior would let the reader answer without reading."""
    drawn = sampler(2)
    pairs = [p for _ in range(300) if (p := drawn.pair(relation))]
    same = sum(a.object == b.object for a, b in pairs) / max(1, len(pairs))
    assert not pairs or 0.2 < same < 0.8


def test_a_coalition_has_every_set_of_a_chains_passages_and_few_others() -> None:
    """A middle link that is missing while the last is told was guessed by who never saw it."""
    drawn = sampler()
    seen: set[tuple[bool, ...]] = set()
    for _ in range(300):
        facts = drawn.walk(3)
        places = [drawn.world.telling_of.get(fact, -1) for fact in facts]
        if len(set(places)) < 3 or -1 in places:
            continue
        shown = drawn.coalitions([facts])
        assert len(shown) == len(set(shown)) <= 3 + max(contexts.BESIDE)
        seen.add(tuple(place in shown for place in places))
    assert len(seen) >= 7


def test_a_partly_told_chain_is_true_and_its_missing_links_have_rivals() -> None:
    drawn = sampler()
    rivalled = drawn_in_all = 0
    for _ in range(100):
        _, told = drawn.shown(drawn.context(8))
        facts = [fact for part in told for fact in part]
        found = drawn.partly_told(2, facts)
        if found is None:
            continue
        relations, start = found
        truth = {(f.subject, f.relation): f for f in drawn.world.facts.values()}
        truth |= FIXED_FACTS
        steps = []
        for relation in relations:
            steps.append(truth[start, relation.name])
            start = steps[-1].object
        assert any(step in facts for step in steps)
        lacking = [step for step in steps if step not in facts]
        assert lacking
        drawn_in_all += 1
        rivalled += {step.relation for step in lacking} <= {fact.relation for fact in facts}
    assert drawn_in_all > 50
    assert rivalled / drawn_in_all > 0.5
