"""Contexts as a workflow shows them: passages by BM25 for a question and for its thoughts.

A lexical search returns passages with similar names and the same relation ("Children of Ralmer" for
"Dream of Ralmer"). Small random worlds hardly contain such passages; here they come from a world as
large as a corpus.
"""

import random
from collections.abc import Sequence

from hopscope.lab.hopland.contexts import Example, Mix, Sampler
from hopscope.lab.hopland.names import Forge
from hopscope.lab.hopland.questions import chain
from hopscope.lab.hopland.world import Fact, World
from hopscope.runtime.retrievers import bm25

MOST = 15
"""Passages of a context, at most."""


class Searched(Sampler):
    """Draws examples with passages by search in one large world."""

    def __init__(self, world: World, rng: random.Random, forge: Forge) -> None:
        super().__init__(world, rng, forge)
        passages = [telling.passage for telling in world.tellings]
        self.index = bm25.from_passages(passages, name=f"hopland-{world.seed}")
        self.place = {passage.id: i for i, passage in enumerate(passages)}

    def example(self, mix: Mix) -> Example:
        """One chain, the passages of some of its retrievals, and questions over these."""
        if self.rng.random() < mix.coalitions:
            return self.few(mix)
        facts = self.chain()
        return self.questioned(mix, self.found(facts), [facts])

    def dialogue(self, mix: Mix) -> Example:
        """One chain, and judgments of its retrieved passages."""
        facts = self.chain()
        shown = self.found(facts)
        return self.judged(mix, shown, facts) if shown else Sampler.dialogue(self, mix)

    def chain(self) -> list[Fact]:
        """One to four facts, each about the object of the one before."""
        facts: list[Fact] = []
        while not facts:
            facts = super().chain()
        return facts

    def beside(self, chains: Sequence[Sequence[Fact]]) -> list[int]:
        """Positions of the passages retrieved for the first chain, in random order."""
        found = self.found(chains[0])
        return self.rng.sample(found, len(found))

    def found(self, facts: Sequence[Fact]) -> list[int]:
        """Positions of the passages, in the order of the retrievals.

        In seven cases of ten some retrievals are absent with the passages that they were the first
        to find, as in the coalitions of a meter: a link's passage is then missing, while passages
        for the answer's name, often the same relation of other entities with the same object, are
        present.
        """
        rng = self.rng
        queries = [chain(rng, facts).text]
        for fact in facts:
            if rng.random() < 0.15:  # a thought that went wrong
                fact = rng.choice(self.by_relation[fact.relation])
            sentence = chain(rng, [fact]).sentences[0]
            # Without the object the search finds rivals, with facts about others.
            queries.append(sentence.replace(fact.object, "") if rng.random() < 0.5 else sentence)
        k = rng.choice((2, 3, 4, 4, 4, 5))
        first: dict[int, int] = {}
        for number, hits in enumerate(self.index.search(queries, k=k)):
            for hit in hits:
                first.setdefault(self.place[hit.passage.id], number)
        absent: set[int] = set()
        draw = rng.random()
        if draw < 0.25:
            absent = set(rng.sample(range(len(queries)), rng.randrange(len(queries))))
        elif draw < 0.7:
            link = rng.choice([fact for fact in facts if fact in self.world.telling_of])
            absent = {first.get(self.world.telling_of[link], 0)}
        shown = [place for place, number in first.items() if number not in absent][:MOST]
        return rng.sample(shown, len(shown)) if rng.random() < 0.3 else shown
