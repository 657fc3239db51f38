"""A world generated from a seed: entities, facts about them, and passages that state the facts.

Invariants: the same arguments give the same world; exactly one passage states each fresh
fact, so removing that passage removes the fact; the 50 countries and their 200 facts
(`FIXED_FACTS`) are the same in every world.
"""

import functools
import random
from dataclasses import dataclass
from typing import Literal

from hopscope.lab.hopland.names import EntityKind, Forge, Split, draw
from hopscope.lab.hopland.relations import FIXED, RELATIONS, Relation, about
from hopscope.runtime.types import Passage

Phrasing = Literal["plain", "seen", "unseen", "mixed"]
"""The passage phrasings of a world: the first of each relation, those for training, only the
held-out one, or all."""

FRESH_KINDS: tuple[EntityKind, ...] = ("person", "film", "city", "company", "university")
Density = Literal["dense", "sparse"]
"""Dense: many facts in passages of one to three each. Sparse: fewer, in as few passages as
can hold them, so that a search for an entity returns all its facts."""

OMITTED: dict[Density, float] = {"dense": 0.25, "sparse": 0.5}
"""The share of possible facts that the world does not contain."""


@dataclass(frozen=True)
class Fact:
    """Subject, relation, object."""

    subject: str
    relation: str
    object: str


@dataclass(frozen=True)
class Telling:
    """A passage and the facts it states."""

    passage: Passage
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class World:
    """Entities, facts and passages of one seed."""

    seed: int
    entities: dict[EntityKind, tuple[str, ...]]
    facts: dict[tuple[str, str], Fact]
    """By subject and relation name; fresh facts only."""
    tellings: tuple[Telling, ...]
    telling_of: dict[Fact, int]
    """The position in `tellings` of the passage that states a fact."""


def _fixed() -> tuple[dict[EntityKind, tuple[str, ...]], dict[tuple[str, str], Fact]]:
    rng = random.Random(50)
    counts: tuple[tuple[EntityKind, int], ...] = (
        ("country", 50),
        ("city", 50),
        ("language", 50),
        ("currency", 50),
        ("continent", 6),
    )
    names: dict[EntityKind, tuple[str, ...]] = {}
    for kind, n in counts:
        drawn: dict[str, None] = {}
        while len(drawn) < n:
            drawn[draw(kind, rng)] = None
        names[kind] = tuple(drawn)
    facts = {}
    for i, country in enumerate(names["country"]):
        for relation in FIXED:
            choices = names[relation.object]
            value = rng.choice(choices) if relation.name == "continent" else choices[i]
            facts[country, relation.name] = Fact(country, relation.name, value)
    return names, facts


FIXED_NAMES, FIXED_FACTS = _fixed()
RESERVED = frozenset(name for names in FIXED_NAMES.values() for name in names)


@functools.cache
def sizes(scale: int) -> dict[EntityKind, int]:
    """The number of entities of each fresh kind in a world of this scale."""
    shares: dict[EntityKind, int] = {
        "person": 8,
        "film": 4,
        "city": 2,
        "company": 3,
        "university": 1,
    }
    return {kind: share * scale for kind, share in shares.items()}


def make(
    seed: int,
    *,
    split: Split,
    scale: int = 3,
    phrasing: Phrasing = "seen",
    density: Density = "dense",
) -> World:
    """Generate the world of this seed, with 18 entities for each unit of `scale`."""
    rng = random.Random(f"hopland {seed} {split} {scale}")
    forge = Forge(rng, split, RESERVED)
    entities = {k: tuple(forge.fresh(k) for _ in range(n)) for k, n in sizes(scale).items()}
    facts = _facts(rng, forge, entities, OMITTED[density])
    tellings = []
    for kind in FRESH_KINDS:
        for name in entities[kind]:
            known = [f for r in about(kind) if (f := facts.get((name, r.name)))]
            tellings.extend(_tell(rng, name, known, phrasing, density))
    for name in rng.sample(FIXED_NAMES["country"], min(50, scale)):
        known = [FIXED_FACTS[name, r.name] for r in FIXED]
        tellings.extend(_tell(rng, name, known, phrasing, density))
    rng.shuffle(tellings)
    numbered = tuple(
        Telling(t.passage.model_copy(update={"id": f"hopland-{seed}-{i}"}), t.facts)
        for i, t in enumerate(tellings)
    )
    where = {fact: i for i, t in enumerate(numbered) for fact in t.facts}
    return World(seed, entities, facts, numbered, where)


def _facts(
    rng: random.Random, forge: Forge, entities: dict[EntityKind, tuple[str, ...]], omitted: float
) -> dict[tuple[str, str], Fact]:
    facts: dict[tuple[str, str], Fact] = {}
    # Few objects per relation, so that subjects often share one, which yes/no questions need.
    pools = {
        name: rng.sample(entities[r.object], max(2, len(entities[r.object]) // 2))
        for name, r in RELATIONS.items()
        if r.object in entities
    }
    few = min(50, max(2, len(entities["city"]) // 2))
    pools["country"] = rng.sample(FIXED_NAMES["country"], few)
    for kind in FRESH_KINDS:
        for subject in entities[kind]:
            for relation in about(kind):
                if rng.random() < omitted:
                    continue
                value = subject
                while value == subject:
                    value = _object(rng, forge, relation, pools)
                facts[subject, relation.name] = Fact(subject, relation.name, value)
    return facts


def _object(
    rng: random.Random, forge: Forge, relation: Relation, pools: dict[str, list[str]]
) -> str:
    if relation.object == "year":
        return forge.passing("year")
    return rng.choice(pools[relation.name])


def _tell(
    rng: random.Random, title: str, known: list[Fact], phrasing: Phrasing, density: Density
) -> list[Telling]:
    """One to three passages about an entity, each with one to three facts."""
    rng.shuffle(known)
    tellings = []
    while known:
        n = 3 if density == "sparse" else rng.choice((1, 2, 2, 3, 3))
        told, known = known[:n], known[n:]
        text = " ".join(_sentence(rng, fact, phrasing) for fact in told)
        tellings.append(Telling(Passage(id="", title=title, text=text), tuple(told)))
    return tellings


def _sentence(rng: random.Random, fact: Fact, phrasing: Phrasing) -> str:
    relation = RELATIONS[fact.relation]
    choices = {
        "plain": relation.phrasings[:1],
        "seen": relation.seen,
        "unseen": (relation.unseen,),
        "mixed": relation.phrasings,
    }
    pattern = rng.choice(choices[phrasing])
    return pattern.format(s=fact.subject, o=fact.object)
