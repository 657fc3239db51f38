"""The players of a run's game, and the evidence when some of them are absent.

Over steps, players are the steps that brought at least one passage into the evidence that a model
was shown, in that step or later. Over the passages of one step, players are the passages it
brought, while the other steps' passages stay. Evidence is the deduplicated union of the passages
brought, always in the order of the trajectory, whoever is absent.

The counterfactual says what takes the place of an absent player's passages:

    empty       nothing. A passage belongs to the first step that brought it, and is gone with it.
    leave-out   nothing, but a passage that another step retrieved too stays.
    random      passages of the corpus, as many and about as long, drawn at random: the effect of
                arbitrary context. Each passage has one stand-in in all coalitions.

The later steps' queries stay as they were (mode `frozen`); `replay` runs the workflow again.

A workflow that drops or replaces evidence is measured by the same rule: a dropped passage still
counts as brought by its step, so the last coalition may hold more than the run's last evidence.

The games are ours.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Passage, Run, Step
from hopscope.tracing.games.coalitions import Coalition, GameMember

CounterfactualKind = Literal["empty", "random", "leave-out"]

CANDIDATES = 64
"""Passages drawn for each stand-in; the nearest in length is taken."""


@dataclass(frozen=True)
class Counterfactual:
    """The replacement of absent players' passages."""

    kind: CounterfactualKind = "empty"
    stand_ins: Mapping[str, Passage] = field(default_factory=dict)
    """For `random`: stand-ins by the key of the passage they replace."""
    seed: int = 0
    """Seed of the draw."""

    @property
    def remark(self) -> str:
        """Its part of the estimator's name; empty for `empty`."""
        if self.kind == "random":
            return f", counterfactual=random(seed={self.seed})"
        return "" if self.kind == "empty" else f", counterfactual={self.kind}"


NOTHING = Counterfactual()


class Slot(NamedTuple):
    """A place in the evidence."""

    passage: Passage
    owners: Coalition
    """The players that bring the passage, each by itself; empty when it is always there."""
    stand_in: Passage | None
    """The passage in its place when none of them takes part."""


@dataclass(frozen=True)
class FrozenGame:
    """A game on the run's record, without running the workflow again."""

    members: tuple[int, ...]
    slots: tuple[Slot, ...]
    remark: str = ""
    step: int | None = None
    """The step whose passages play; None when steps do, or all passages of the run."""
    keys: tuple[str, ...] = ()
    """Keys of the passages that are the members; empty when steps are."""

    @property
    def players(self) -> tuple[int, ...]:
        owning = {owner for slot in self.slots for owner in slot.owners}
        return tuple(member for member in self.members if member in owning)

    def identify(self, member: int) -> GameMember:
        return GameMember(self.step, self.keys[member]) if self.keys else GameMember(member, None)

    def brings(self, member: int) -> frozenset[str]:
        return frozenset(slot.passage.key for slot in self.slots if member in slot.owners)

    def evidence(self, coalition: Coalition) -> tuple[Passage, ...]:
        """The passages in the order of the trajectory."""
        present = (
            slot.passage if not slot.owners or slot.owners & coalition else slot.stand_in
            for slot in self.slots
        )
        return tuple(passage for passage in present if passage is not None)


def contributions(run: Run) -> dict[int, tuple[Passage, ...]]:
    """The passages that each step brought, by step index: new in the step and shown then or later.
    Steps that brought none are left out."""
    brought: dict[int, tuple[Passage, ...]] = {}
    taken: set[str] = set()
    for position, step in enumerate(run.steps):
        shown = _shown_from(run, position)
        by_key = {passage.key: passage for passage in step.evidence}
        fresh = [key for key in step.new if key in shown and key in by_key and key not in taken]
        taken.update(fresh)
        if fresh:
            brought[step.index] = tuple(by_key[key] for key in fresh)
    return brought


def over_steps(run: Run, counterfactual: Counterfactual = NOTHING) -> FrozenGame:
    """The game whose players are the run's steps."""
    slots = tuple(
        Slot(passage, owners, counterfactual.stand_ins.get(passage.key))
        for passage, owners in _owned(run, counterfactual.kind)
    )
    members = tuple(step.index for step in run.steps)
    return FrozenGame(members, slots, counterfactual.remark)


def over_passages(
    run: Run, step: int, counterfactual: Counterfactual = NOTHING
) -> FrozenGame | None:
    """The game whose players are the passages that this step brought; None when it brought none.

    Its total, with all minus without any, is the step's leave-one-out credit.
    """
    slots: list[Slot] = []
    keys: list[str] = []
    for passage, owners in _owned(run, counterfactual.kind):
        own: Coalition = frozenset()
        if step in owners:
            if len(owners) == 1:
                own = frozenset({len(keys)})
            keys.append(passage.key)
        slots.append(Slot(passage, own, counterfactual.stand_ins.get(passage.key)))
    if not keys:
        return None
    members = tuple(range(len(keys)))
    return FrozenGame(members, tuple(slots), counterfactual.remark, step, tuple(keys))


def over_all_passages(run: Run, counterfactual: Counterfactual = NOTHING) -> FrozenGame:
    """The game whose players are all passages that the run's steps brought."""
    brought = [p for passages in contributions(run).values() for p in passages]
    slots = tuple(
        Slot(passage, frozenset({place}), counterfactual.stand_ins.get(passage.key))
        for place, passage in enumerate(brought)
    )
    members = tuple(range(len(brought)))
    keys = tuple(passage.key for passage in brought)
    return FrozenGame(members, slots, counterfactual.remark, keys=keys)


def random_passages(run: Run, corpus: Sequence[Passage], *, seed: int) -> Counterfactual:
    """Draw a stand-in for every passage of the run: the nearest in length (in words) of random
    passages that the run did not retrieve.

    Raises:
        UsageError: the corpus is too small.
    """
    brought = [p for passages in contributions(run).values() for p in passages]
    retrieved = {passage.key: passage for passage in (*brought, *_held(run))}
    taken = {passage.content_hash for passage in retrieved.values()}
    draw = random.Random(seed)
    stand_ins: dict[str, Passage] = {}
    for key, passage in retrieved.items():
        places = draw.sample(range(len(corpus)), min(CANDIDATES, len(corpus)))
        drawn = [p for p in map(corpus.__getitem__, places) if p.content_hash not in taken]
        free = [p for p in drawn if p.key not in retrieved]
        if not free:
            raise UsageError(
                f"the corpus of {len(corpus)} passages has too few that the run did not retrieve: "
                "counterfactual random needs such passages as stand-ins. Use a larger corpus, or "
                "counterfactual='empty' or 'leave-out' (--counterfactual)"
            )
        length = _words(passage)
        nearest = min(free, key=lambda p: abs(_words(p) - length))
        taken.add(nearest.content_hash)
        stand_ins[key] = nearest
    return Counterfactual("random", stand_ins, seed)


def _owned(run: Run, kind: CounterfactualKind) -> list[tuple[Passage, Coalition]]:
    """Every passage brought, in order, with the steps that bring it."""
    brought = contributions(run).items()
    if kind != "leave-out":
        return [
            (passage, frozenset({first})) for first, passages in brought for passage in passages
        ]
    return [
        (passage, frozenset({first, *_retrieved_again(run, passage.key)}))
        for first, passages in brought
        for passage in passages
    ]


def _retrieved_again(run: Run, key: str) -> list[int]:
    """The steps that retrieved the passage and kept it in evidence that a model was shown."""
    return [
        step.index
        for position, step in enumerate(run.steps)
        if key in _ranked(step)
        and any(passage.key == key for passage in step.evidence)
        and key in _shown_from(run, position)
    ]


def _ranked(step: Step) -> set[str]:
    return {hit.passage.key for hit in step.ranked}


def _shown_from(run: Run, position: int) -> set[str]:
    return {key for later in run.steps[position:] for key in later.shown}


def _held(run: Run) -> list[Passage]:
    return [
        passage
        for step in run.steps
        for passage in (*(hit.passage for hit in step.ranked), *step.evidence)
    ]


def _words(passage: Passage) -> int:
    return len(passage.text.split())
