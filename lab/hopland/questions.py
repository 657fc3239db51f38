"""Questions over facts: chains of 1 to 4 hops, comparisons and yes/no questions.

Invariant: a question consists of its facts alone (`steps`, in order), so they determine its
answer, its reasoning and its gold passages.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hopscope.lab.hopland.names import EntityKind
from hopscope.lab.hopland.relations import RELATIONS, Relation, about
from hopscope.lab.hopland.world import Fact

QuestionKind = Literal["chain", "comparison", "yesno"]
MARKER = "So the answer is:"

# relation -> questions; the answer is the subject with the smaller year.
COMPARISONS: dict[str, tuple[str, ...]] = {
    "birth_year": ("Who was born first, {a} or {b}?", "Who is older, {a} or {b}?"),
    "release_year": (
        "Which film came out first, {a} or {b}?",
        "Which film was released first, {a} or {b}?",
    ),
    "founding_year": (
        "Which company was founded first, {a} or {b}?",
        "Which company is older, {a} or {b}?",
    ),
}
# relation -> questions; the answer is yes when both subjects have the same object.
SAME: dict[str, tuple[str, ...]] = {
    "birthplace": ("Were {a} and {b} born in the same city?",),
    "employer": ("Do {a} and {b} work for the same company?",),
    "alma_mater": ("Did {a} and {b} study at the same school?",),
    "director": ("Were {a} and {b} directed by the same person?",),
    "studio": ("Were {a} and {b} produced by the same company?",),
    "filmed_in": ("Were {a} and {b} filmed in the same city?",),
    "country": ("Are {a} and {b} in the same country?",),
    "headquarters": ("Are {a} and {b} based in the same city?",),
}


@dataclass(frozen=True)
class GeneratedQuestion:
    """A question with its facts, its reasoning and its answer."""

    text: str
    answer: str
    kind: QuestionKind
    steps: tuple[Fact, ...]
    """The facts in reasoning order."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """One canonical sentence per fact, with its object right before the final stop."""
        return tuple(
            RELATIONS[f.relation].canonical.format(s=f.subject, o=f.object) for f in self.steps
        )

    @property
    def reasoning(self) -> str:
        """The chain of thought: the sentences, then the answer."""
        return " ".join([*self.sentences, f"{MARKER} {self.answer}."])


def chain(rng: random.Random, steps: Sequence[Fact]) -> GeneratedQuestion:
    """Ask for the object of the last fact, naming only the subject of the first."""
    phrase = steps[0].subject
    for fact in steps[:-1]:
        phrase = rng.choice(RELATIONS[fact.relation].noun).format(s=phrase)
    last = steps[-1]
    text = rng.choice(RELATIONS[last.relation].questions).format(s=phrase)
    return GeneratedQuestion(text, last.object, "chain", tuple(steps))


def comparison(rng: random.Random, first: Fact, second: Fact) -> GeneratedQuestion:
    """Ask which of two subjects has the earlier year."""
    text = rng.choice(COMPARISONS[first.relation]).format(a=first.subject, b=second.subject)
    earlier = first if int(first.object) < int(second.object) else second
    return GeneratedQuestion(text, earlier.subject, "comparison", (first, second))


def yesno(rng: random.Random, first: Fact, second: Fact) -> GeneratedQuestion:
    """Ask whether two subjects have the same object."""
    text = rng.choice(SAME[first.relation]).format(a=first.subject, b=second.subject)
    answer = "yes" if first.object == second.object else "no"
    return GeneratedQuestion(text, answer, "yesno", (first, second))


def path(rng: random.Random, kind: EntityKind, hops: int) -> tuple[Relation, ...] | None:
    """A random typed sequence of relations from a kind, or None at a dead end."""
    taken: list[Relation] = []
    for left in reversed(range(hops)):
        options = [r for r in about(kind) if not left or about(r.object)]
        if not options:
            return None
        taken.append(rng.choice(options))
        kind = taken[-1].object
    return tuple(taken)
