"""The value without some steps or passages, from stored coalition values."""

from collections.abc import Iterable
from typing import NamedTuple

from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.literals import whole_number
from hopscope.runtime.texts.storable import brief
from hopscope.runtime.types import MeasuredAnswers, Measurement, Run
from hopscope.tracing.games.coalitions import Coalition, Coalitions, MissingEvidence
from hopscope.tracing.games.frozen import (
    Counterfactual,
    contributions,
    over_all_passages,
    over_steps,
)
from hopscope.tracing.games.rule import gain
from hopscope.tracing.what_if.recall import Recall

PASSAGE = "p:"
MOST, NAMED = 10, 80
"""Passages that an error names, and characters of each."""
REPEATED = (
    "mode replay runs the workflow again without steps or without passages of one step, not "
    "without both: measure this with --mode frozen"
)


class Parts(NamedTuple):
    """Steps and passages of a run."""

    steps: tuple[int, ...]
    passages: tuple[str, ...]
    """Keys."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*map(str, self.steps), *(f"{PASSAGE}{key}" for key in self.passages))


class Without(NamedTuple):
    """One meter's value without some parts."""

    meter: str
    value: Measurement
    """Without them."""
    full: Measurement
    """With all evidence."""
    difference: Measurement
    """`value` minus `full`."""
    answers: MeasuredAnswers | None = None
    """The stored answers behind `value`."""
    full_answers: MeasuredAnswers | None = None
    """Those behind `full`."""


def parts(run: Run, names: Iterable[str | int]) -> Parts:
    """The parts of a run by name: the number of a step, or `p:` and the key or title of a passage.

    Raises:
        UsageError: the run has no such part.
    """
    steps: list[int] = []
    keys: list[str] = []
    brought = [p for passages in contributions(run).values() for p in passages]
    for name in map(str, names):
        if name.startswith(PASSAGE):
            text = name.removeprefix(PASSAGE)
            found = [p.key for p in brought if p.key == text]
            found = found or [p.key for p in brought if p.title == text]
            if len(found) != 1:
                first = {p.key: brief(f"{PASSAGE}{p.key} ({p.title})", NAMED) for p in brought}
                every = ", ".join([*first.values()][:MOST]) + (", …" if len(first) > MOST else "")
                raise UsageError(
                    f"{brief(name, NAMED)!r} names {'several passages' if found else 'no passage'} "
                    f"that a step brought and a model was shown: {every or 'there are none'}"
                )
            keys += found
        elif (step := whole_number(name)) not in [each.index for each in run.steps]:
            last = run.steps[-1].index if run.steps else None
            raise UsageError(
                f"{brief(name, NAMED)!r} names no step of the run: give a number from 0 to {last}, "
                f"or {PASSAGE}KEY for a passage"
            )
        else:
            steps.append(step)
    return Parts(tuple(dict.fromkeys(steps)), tuple(dict.fromkeys(keys)))


def kept(run: Run, removed: Parts, counterfactual: Counterfactual) -> Coalition:
    """The passages that stay, as a coalition of the game among all passages."""
    gone = set(removed.passages)
    for slot in over_steps(run, counterfactual).slots:
        if slot.owners and slot.owners <= set(removed.steps):
            gone.add(slot.passage.key)
    keys = over_all_passages(run).keys
    return frozenset(place for place, key in enumerate(keys) if key not in gone)


def without(recall: Recall, removed: Parts) -> list[Without]:
    """By each meter, the value without these parts. If it is not stored, it is unmeasured, and the
    reason names the command that measures it."""
    if recall.repeats and removed.steps and removed.passages:
        gap = Measurement(value=None, reason=REPEATED)
        return [Without(meter, gap, gap, gap) for meter in recall.meters]
    if recall.repeats:  # only rules choose the coalitions for which workflows run again
        return [_without(recall, meter, removed) for meter in recall.meters]
    options = [word for name in removed.names for word in ("--without", name)]
    return [_without(recall.asking(*options), meter, removed) for meter in recall.meters]


def _without(recall: Recall, meter: str, removed: Parts) -> Without:
    coalitions, coalition = _place(recall, meter, removed)
    value, full = (coalitions.value(each) for each in (coalition, coalitions.full))
    change = coalitions.combine(gain(coalition, coalitions.full), "without")
    known = recall.answers(meter)
    told = [
        None if isinstance(key := coalitions.key(each), MissingEvidence) else known.get(key)
        for each in (coalition, coalitions.full)
    ]
    return Without(meter, value, full, change, *told)


def _place(recall: Recall, meter: str, removed: Parts) -> tuple[Coalitions, Coalition]:
    """The game in which the value may be stored, and the coalition."""
    values = recall.values(meter)
    if not recall.rebuildable and not removed.passages:
        [game] = recall.games(meter, "steps")
        return Coalitions(game, values), frozenset(game.players) - set(removed.steps)
    if not recall.rebuildable and not removed.steps:
        for game in recall.games(meter, "passages"):
            named = {game.identify(member).passage: member for member in game.members}
            if named.keys() >= set(removed.passages):
                gone = {named[key] for key in removed.passages}
                return Coalitions(game, values), frozenset(game.players) - gone
    game = recall.all_passages(meter)
    return Coalitions(game, values), kept(recall.run, removed, recall.counterfactual)
