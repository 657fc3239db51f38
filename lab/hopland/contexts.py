"""Training examples: some passages and several questions that share them.

Invariant: a question's target follows from the shown passages and the fixed facts. A missing link
is answered by a random name of the right type that no passage offers, so that without evidence the
reader spreads its belief instead of guessing from the passages or refusing.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hopscope.lab.hopland import turns
from hopscope.lab.hopland.names import EntityKind, Forge
from hopscope.lab.hopland.questions import (
    COMPARISONS,
    SAME,
    GeneratedQuestion,
    chain,
    comparison,
    path,
    yesno,
)
from hopscope.lab.hopland.relations import FIXED, RELATIONS, Relation
from hopscope.lab.hopland.turns import Scene, Task, Turn
from hopscope.lab.hopland.world import FIXED_FACTS, FIXED_NAMES, FRESH_KINDS, Fact, Phrasing, World
from hopscope.runtime.prompting import prompts
from hopscope.runtime.types import Message, Passage

QUESTIONS_JUDGED = 5
"""The most questions of one dialogue."""
TURNS_JUDGED = 2
"""The most selections and rankings for each of them."""

BESIDE = (0, 0, 1, 1, 2, 3)
"""Numbers of passages that a coalition adds to those of its chains."""


@dataclass(frozen=True)
class Mix:
    """The mix that a stage of the curriculum draws from."""

    passages: tuple[int, ...]
    """Passages of a context, drawn uniformly."""
    tasks: tuple[tuple[str, float], ...]
    """Question shapes "1".."4" (hops), "comparison", "yesno", "fixed", with weights."""
    reasoning: float
    """The share of questions answered by a chain of thought."""
    missing: float
    """The share of questions of one fact, or of two to compare, that the context lacks."""
    broken: float = 0.0
    """The share of questions over several hops of which the context lacks a link."""
    questions: int = 8
    """The most questions of a context; short contexts get fewer."""
    phrasing: Phrasing = "seen"
    others: float = 0.0
    """The share of the other questions in the prompts of the workflows' other steps."""
    judged: tuple[int, ...] = (5,)
    """Passages that a dialogue judges, drawn uniformly."""
    alike: float = 0.0
    """The share of contexts of rivals: passages that state the same relations of different
    entities, so that only the entity of the question identifies the right one."""
    coalitions: float = 0.0
    """The share of contexts of few passages, some of those that state one chain."""


@dataclass(frozen=True)
class Example:
    """The messages that begin several prompts, and the last message of each."""

    opening: tuple[Message, ...]
    passages: tuple[Passage, ...]
    """The passages of the opening."""
    told: tuple[tuple[Fact, ...], ...]
    """For each passage, the facts it states."""
    asked: tuple[GeneratedQuestion, ...]
    """For each turn, its question."""
    turns: tuple[Turn, ...]


class Sampler:
    """Draws training examples from one world."""

    def __init__(self, world: World, rng: random.Random, forge: Forge) -> None:
        self.world = world
        self.rng = rng
        self.forge = forge
        self.kind_of: dict[str, EntityKind] = {n: k for k in FRESH_KINDS for n in world.entities[k]}
        self.kind_of |= dict.fromkeys(FIXED_NAMES["country"], "country")
        self.by_subject = group(world.facts.values())
        self.by_relation: dict[str, list[Fact]] = defaultdict(list)
        self.into: dict[str, list[Fact]] = defaultdict(list)
        self.titled: dict[str, list[int]] = defaultdict(list)
        for fact in world.facts.values():
            self.by_relation[fact.relation].append(fact)
            self.into[fact.object].append(fact)
        for i, telling in enumerate(world.tellings):
            self.titled[telling.passage.title].append(i)

    def example(self, mix: Mix) -> Example:
        """One context with its questions."""
        if self.rng.random() < mix.coalitions:
            return self.few(mix)
        return self.questioned(mix, self.drawn(mix, mix.passages))

    def few(self, mix: Mix) -> Example:
        """Some of the passages of some chains, with questions about these chains."""
        lengths = self.rng.choices((2, 3, 4), (2, 3, 1), k=self.rng.randint(1, 4))
        chains = [steps for hops in lengths if (steps := self.walk(hops))]
        return self.questioned(mix, self.coalitions(chains), chains)

    def dialogue(self, mix: Mix) -> Example:
        """One context, its passages judged."""
        return self.judged(mix, self.drawn(mix, mix.judged))

    def drawn(self, mix: Mix, sizes: Sequence[int]) -> list[int]:
        """Positions of the passages of one context."""
        wanted = self.rng.choice(sizes)
        if self.rng.random() < mix.alike:
            chained = any(shape == "2" for shape, _ in mix.tasks)
            return self.rivals(wanted) if chained else self.alike(wanted)
        return self.context(wanted)

    def questioned(
        self, mix: Mix, shown: Sequence[int], chains: Sequence[Sequence[Fact]] = ()
    ) -> Example:
        """A context with its questions: first about these chains, the first one in both ways."""
        rng = self.rng
        passages, told = self.shown(shown)
        # Few passages state few facts; more questions would only repeat them.
        count = min(mix.questions, 3 + len(shown)) if shown else mix.questions
        facts = [fact for part in told for fact in part]
        asked: list[GeneratedQuestion] = []
        made: list[Turn] = []
        task: Task
        for place, first in enumerate(chains):
            relations = [RELATIONS[fact.relation] for fact in first]
            steps, _ = self.resolved(relations, first[0].subject, facts)
            both = not place or rng.random() < mix.reasoning
            for task in (turns.answer, turns.reasoned) if both else (turns.answer,):
                asked.append(chain(rng, steps))
                made.append(turns.made(task, self.scene(asked[-1], passages, told)))
        while len(asked) < count:
            question = self.asking(mix, facts)
            if any(question.steps == before.steps for before in asked):
                question = self.asking(mix, facts)  # one more try: repeats teach less
            task = turns.reasoned if rng.random() < mix.reasoning else turns.answer
            if task is turns.answer and rng.random() < mix.others:
                others = turns.OVER_PASSAGES if shown else turns.WITHOUT_PASSAGES
                task = turns.drawn(rng, others)
            asked.append(question)
            made.append(turns.made(task, self.scene(question, passages, told)))
        return Example((prompts.system(passages),), passages, told, tuple(asked), tuple(made))

    def judged(self, mix: Mix, shown: Sequence[int], first: Sequence[Fact] = ()) -> Example:
        """A dialogue in which the passages are selected and ranked for some questions.

        The opening announces the first question; every last message names its own. So one opening
        serves several, and the reader follows the last message.
        """
        rng = self.rng
        passages, told = self.shown(shown)
        facts = [fact for part in told for fact in part]
        task = turns.relevance if rng.random() < 0.25 else turns.dialogue
        referred = rng.random() < 0.5
        openings: list[tuple[Message, ...]] = []
        asked: list[GeneratedQuestion] = []
        made: list[Turn] = []
        for place in range(min(QUESTIONS_JUDGED, 1 + len(shown))):
            if first and not place:
                relations = [RELATIONS[fact.relation] for fact in first]
                question = chain(rng, self.resolved(relations, first[0].subject, facts)[0])
            else:
                question = self.asking(mix, facts)
                if any(question.steps == before.steps for before in asked):
                    question = self.asking(mix, facts)  # one more try: repeats teach less
            opening, turned = task(self.scene(question, passages, told), referred=referred)
            kept = turned if len(turned) <= TURNS_JUDGED else rng.sample(turned, TURNS_JUDGED)
            openings.append(opening)
            asked += [question] * len(kept)
            made += kept
        return Example(openings[0], passages, told, tuple(asked), tuple(made))

    def aside(self, mix: Mix) -> Example:
        """Prompts with an opening of their own: rewrite a question, compare answers, judge one
        passage, complete a ranking."""
        rng = self.rng
        weights = [weight for _, _, weight in turns.OPENINGS]
        [(opening, task, _)] = rng.choices(turns.OPENINGS, weights)
        asked: list[GeneratedQuestion] = []
        made: list[Turn] = []
        for _ in range(10):
            passages, told = self.shown(self.context(rng.choice((2, 3, 4))))
            asked.append(self.asking(mix, [fact for part in told for fact in part]))
            made.append(turns.made(task, self.scene(asked[-1], passages, told)))
        return Example(opening, (), (), tuple(asked), tuple(made))

    def asking(self, mix: Mix, told: Sequence[Fact]) -> GeneratedQuestion:
        """One question of the mix over the shown facts."""
        shapes, weights = zip(*mix.tasks, strict=True)
        [shape] = self.rng.choices(shapes, weights)
        share = mix.broken if shape in ("2", "3", "4") else mix.missing
        absent = not told or self.rng.random() < share
        return (self.absent if absent else self.present)(shape, told)

    def shown(
        self, places: Sequence[int]
    ) -> tuple[tuple[Passage, ...], tuple[tuple[Fact, ...], ...]]:
        """The passages at these positions of the world, and the facts of each."""
        tellings = [self.world.tellings[i] for i in places]
        return tuple(t.passage for t in tellings), tuple(t.facts for t in tellings)

    def scene(
        self,
        asked: GeneratedQuestion,
        passages: tuple[Passage, ...],
        told: tuple[tuple[Fact, ...], ...],
    ) -> Scene:
        """A question with the data that its turns need."""
        if asked.kind == "yesno":
            other = {"yes": "no", "no": "yes"}[asked.answer]
        elif asked.kind == "comparison":
            other = next(f.subject for f in asked.steps if f.subject != asked.answer)
        else:
            other = self.anything(RELATIONS[asked.steps[-1].relation])
        return Scene(self.rng, asked, passages, told, other)

    def context(self, n: int) -> list[int]:
        """Positions of n passages: those of one or two chains, a pair, and distractors."""
        rng, world = self.rng, self.world
        facts: list[Fact] = []
        shown: set[int] = set()
        while n and len(shown) < max(1, round(n * 0.6)):
            if rng.random() < 0.3:
                facts += self.pair(rng.choice([*COMPARISONS, *SAME]))
            else:
                facts += self.walk(rng.choice((1, 2, 2, 2, 3, 4)))
            if not facts:
                facts = [rng.choice(list(world.facts.values()))]
            for fact in facts[-4:]:
                if len(shown) < n and fact in world.telling_of:
                    shown.add(world.telling_of[fact])
        return self.distracted(shown, facts, n)

    def alike(self, n: int) -> list[int]:
        """Positions of up to n passages that state one relation of different entities."""
        facts = self.by_relation[self.rng.choice(sorted(self.by_relation))]
        shown = {self.world.telling_of[fact] for fact in facts if fact in self.world.telling_of}
        return self.rng.sample(sorted(shown), min(n, len(shown)))

    def rivals(self, n: int) -> list[int]:
        """Positions of up to n passages of two-hop chains with the same two relations."""
        rng, where = self.rng, self.world.telling_of
        model = self.walk(2)
        if len(model) < 2:
            return self.alike(n)
        shown: set[int] = set()
        first = self.by_relation[model[0].relation]
        for fact in [model[0], *rng.sample(first, len(first))]:
            after = [f for f in self.by_subject[fact.object] if f.relation == model[1].relation]
            both = {where[f] for f in (fact, *after) if f in where}
            if after and len(shown | both) <= n:
                shown |= both
        return self.distracted(shown, model, n) if rng.random() < 0.7 else sorted(shown)

    def chain(self) -> list[Fact]:
        """One to four facts, each about the object of the one before."""
        return self.walk(self.rng.choice((1, 2, 2, 2, 3, 3, 4)))

    def coalitions(self, chains: Sequence[Sequence[Fact]]) -> list[int]:
        """Positions of some of the passages that state each chain, with few others, as a credit
        rule shows them to the reader. A missing link is as often in the middle as first or last."""
        rng, where = self.rng, self.world.telling_of
        shown: set[int] = set()
        lacking: set[int] = set()
        for facts in chains:
            stated = [where[fact] for fact in facts if fact in where]
            draw = rng.random()
            if draw < 0.2:
                kept = [place for place in stated if rng.random() < 0.5]
            elif draw < 0.6 and stated:
                out = rng.choice(stated)
                kept = [place for place in stated if place != out]
            else:
                kept = stated
            shown.update(kept)
            lacking.update(set(stated) - set(kept))
        shown -= lacking
        others = [place for place in self.beside(chains) if place not in shown | lacking]
        shown.update(others[: rng.choice(BESIDE)])
        return rng.sample(sorted(shown), len(shown))

    def beside(self, chains: Sequence[Sequence[Fact]]) -> list[int]:
        """Positions of passages that resemble those of the chains, and of others."""
        facts = [fact for steps in chains for fact in steps]
        return self.distracted(set(), facts, max(BESIDE) + len(facts))

    def distracted(self, shown: set[int], facts: Sequence[Fact], n: int) -> list[int]:
        """Fill up to n passages, half of them sharing an entity or a relation with the facts."""
        rng, world = self.rng, self.world
        shown = set(shown)
        while len(shown) < n:
            pick = rng.randrange(len(world.tellings))
            draw = rng.random()
            if facts and draw < 0.6:
                fact = rng.choice(facts)
                if draw < 0.3:
                    near = self.titled.get(rng.choice((fact.subject, fact.object)), [])
                else:
                    near = [world.telling_of[f] for f in self.by_relation.get(fact.relation, [])]
                pick = rng.choice(near) if near else pick
            shown.add(pick)
        return rng.sample(sorted(shown), len(shown))

    def walk(self, hops: int) -> list[Fact]:
        """A chain of fresh facts of the world, of up to `hops` facts."""
        steps: list[Fact] = []
        options = [f for r in self.by_relation.values() for f in self.rng.sample(r, 1)]
        while options and len(steps) < hops:
            steps.append(self.rng.choice(options))
            options = self.by_subject.get(steps[-1].object, [])
        return steps

    def pair(self, relation: str, facts: Sequence[Fact] | None = None) -> list[Fact]:
        """Two facts of a relation with different subjects; half of the time with the same object,
        if there are any."""
        pool = self.by_relation.get(relation, []) if facts is None else facts
        pool = [f for f in pool if f.relation == relation]
        if len(pool) < 2:
            return []
        first = self.rng.choice(pool)
        same = [f for f in pool if f.object == first.object and f != first]
        other = [f for f in pool if f.object != first.object]
        wanted = same if same and relation in SAME and self.rng.random() < 0.5 else other
        return [first, self.rng.choice(wanted)] if wanted else []

    def present(self, shape: str, told: Sequence[Fact]) -> GeneratedQuestion:
        """A question that the shown facts answer, of fewer hops if they form no longer chain."""
        rng = self.rng
        if shape == "fixed":
            return self.fixed()
        if shape in ("comparison", "yesno"):
            table = COMPARISONS if shape == "comparison" else SAME
            for relation in rng.sample(sorted(table), len(table)):
                if facts := self.pair(relation, told):
                    return (comparison if shape == "comparison" else yesno)(rng, *facts)
            shape = "1"
        by_subject = group(told)
        for hops in range(int(shape), 0, -1):
            if found := self.chains(by_subject, hops):
                return chain(rng, rng.choice(found))
        raise ValueError("no facts are told")

    def chains(self, by_subject: dict[str, list[Fact]], hops: int) -> list[tuple[Fact, ...]]:
        """All chains of shown facts of this length; the last hop may be a fixed fact."""
        found: list[tuple[Fact, ...]] = [(f,) for facts in by_subject.values() for f in facts]
        for _ in range(hops - 1):
            longer: list[tuple[Fact, ...]] = []
            for steps in found:
                end = steps[-1].object
                longer += [(*steps, f) for f in by_subject.get(end, []) if f not in steps]
                if end in FIXED_NAMES["country"] and self.rng.random() < 0.4:
                    fixed = FIXED_FACTS[end, self.rng.choice(FIXED).name]
                    longer.append((*steps, fixed))
            found = longer
        return found

    def fixed(self) -> GeneratedQuestion:
        """A question about one of the 200 fixed facts."""
        return chain(self.rng, [self.rng.choice(list(FIXED_FACTS.values()))])

    def absent(self, shape: str, told: Sequence[Fact]) -> GeneratedQuestion:
        """A question with a link that the shown facts lack; that link is drawn at random."""
        rng = self.rng
        if shape == "fixed":
            return self.fixed()
        if shape in ("comparison", "yesno"):
            return self.absent_pair(shape, told)
        while True:
            steps, lacking = self.resolved(*self.absent_path(int(shape), told), told)
            if lacking:
                return chain(rng, steps)

    def resolved(
        self, relations: Sequence[Relation], start: str, told: Sequence[Fact]
    ) -> tuple[list[Fact], bool]:
        """The facts of a path, with links that are not shown drawn at random; whether any was."""
        known = {(f.subject, f.relation): f for f in told}
        steps, lacking = [], False
        for relation in relations:
            fact = known.get((start, relation.name)) or FIXED_FACTS.get((start, relation.name))
            if fact is None:
                lacking = True
                fact = Fact(start, relation.name, self.anything(relation))
            steps.append(fact)
            start = fact.object
        return steps, lacking

    def absent_path(self, hops: int, told: Sequence[Fact]) -> tuple[tuple[Relation, ...], str]:
        """Relations and a start: near the shown facts, or leading into them, or anywhere."""
        rng = self.rng
        draw = rng.random()
        if told and draw < 0.35 and hops > 1:  # a true chain, of which links are told
            return self.partly_told(hops, told) or self.absent_path(hops, told)
        if told and draw < 0.5:  # begins with a told fact, or at an entity that is told of
            fact = rng.choice(told)
            rest = path(rng, RELATIONS[fact.relation].object, hops - 1) if hops > 1 else ()
            if rest:
                return (RELATIONS[fact.relation], *rest), fact.subject
            start = rng.choice((fact.subject, fact.object))
        elif told and draw < 0.9 and hops > 1:  # its later hops are told, its first is not
            fact = rng.choice(told)
            before = [f for f in self.into.get(fact.subject, []) if f not in told]
            if before:
                first = rng.choice(before)
                rest = path(rng, RELATIONS[fact.relation].object, hops - 2) if hops > 2 else ()
                if rest is not None:
                    named = (RELATIONS[first.relation], RELATIONS[fact.relation], *rest)
                    return named, first.subject
            start = rng.choice(list(self.kind_of))
        else:
            start = rng.choice(list(self.kind_of))
        kind = self.kind_of.get(start)
        relations = path(rng, kind, hops) if kind else None
        if relations is None:
            return self.absent_path(hops, ())
        return relations, start

    def partly_told(
        self, hops: int, told: Sequence[Fact]
    ) -> tuple[tuple[Relation, ...], str] | None:
        """A chain of the world through a shown fact. Its missing links have, if possible, relations
        that are shown of other entities, so that the reader learns not to confuse them."""
        rng = self.rng
        known, offered = set(told), {fact.relation for fact in told}
        steps: tuple[Fact, ...] = (rng.choice(told),)
        while len(steps) < hops:
            before = [(f, *steps) for f in self.into.get(steps[0].subject, [])]
            longer = before + [(*steps, f) for f in self.by_subject.get(steps[-1].object, [])]
            new = [set(made) - set(steps) - known for made in longer]
            near = [
                made
                for made, lacking in zip(longer, new, strict=True)
                if lacking and all(fact.relation in offered for fact in lacking)
            ]
            if not longer:
                return None
            steps = rng.choice(near if near and rng.random() < 0.7 else longer)
        if known.issuperset(steps):
            return None
        return tuple(RELATIONS[fact.relation] for fact in steps), steps[0].subject

    def absent_pair(self, shape: str, told: Sequence[Fact]) -> GeneratedQuestion:
        rng = self.rng
        table = COMPARISONS if shape == "comparison" else SAME
        relation = RELATIONS[rng.choice(sorted(table))]
        pool = self.world.entities[relation.subject]
        known = {f.subject: f for f in told if f.relation == relation.name}
        lacking = [n for n in pool if n not in known] or [self.forge.passing(relation.subject)]
        one = Fact(rng.choice(lacking), relation.name, self.anything(relation))
        other = rng.choice([n for n in pool if n != one.subject])
        two = known.get(other) or Fact(other, relation.name, self.anything(relation))
        if shape == "yesno" and rng.random() < 0.5:
            one = Fact(one.subject, relation.name, two.object)
        while shape == "comparison" and one.object == two.object:
            one = Fact(one.subject, relation.name, self.anything(relation))
        first, second = rng.sample((one, two), 2)
        return (comparison if shape == "comparison" else yesno)(rng, first, second)

    def anything(self, relation: Relation) -> str:
        """An object of the right type that no passage mentions."""
        if relation.object in FIXED_NAMES and relation.object != "city":
            return self.rng.choice(FIXED_NAMES[relation.object])
        return self.forge.passing(relation.object)


def group(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    """Facts by subject."""
    grouped: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        grouped[fact.subject].append(fact)
    return grouped
