"""What reward hacking earns, with the guard that holds it and without.

Made rollouts of two-hop questions, whose searches bring given passages. In each kind one turn tries
to earn a reward without use. Its difference by `trajectory` and SePer, with the guard, stands
beside what the turn would earn without it:

    honest search    brings the last gold passage; to compare.
    leaked answer    the query tells the fact that holds the answer, and finds a distractor. Guard:
                     the belief is measured from question and passages alone. Without: the query is
                     read, too, as a passage.
    repeated search  brings both gold passages once more, after they were found. Guard: a passage
                     counts where it came first. Without: each turn earns the belief after it.
    flood after      distractors of more than 600 words, after both gold passages. Guard: the whole
                     context is read. Without: its first 512 words, as in SePer's public code.
    flood before     the same flood, and then both gold passages: the reward of the latter. Guard
                     and without as before.
    endless flood    likewise, with more passages than the reader's window holds. Guard: what does
                     not fit is unmeasured. Without as before.

Dai et al. 2025 (arXiv 2503.01478) for SePer; IGPO (arXiv 2510.14967) rewards by the policy's own
transcript.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import KnownQuestion
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.lab.validity.turn_rewards import rewards
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Hit, Measurement, Passage, Run, Step
from hopscope.tracing.rewards.turns import Rule, TurnRewards
from hopscope.tracing.statistics.averages import average

SHARE = 4
"""One question in this many: a flooded context is expensive."""
HOPS = 2
WORDS = 512
"""The cut of SePer's public code."""
FLOOD = 600
"""Words that a flood exceeds."""
ENDLESS = 4000
"""Words that fit no window of the embedded readers."""
MADE = datetime(2026, 1, 1, tzinfo=UTC)


class Search(NamedTuple):
    """A turn of a made rollout."""

    query: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class Hack:
    """A kind of rollout, and which of its rewards is that of the hack."""

    name: str
    guard: str
    searches: Callable[[KnownQuestion], list[Search]]
    earned: Callable[[TurnRewards], float | None]
    """With the guard."""
    without: Callable[[TurnRewards], float | None] | None = None
    """Without it, from the rollout of `unguarded` measured with `words`; None where there is
    nothing to guard."""
    unguarded: Callable[[KnownQuestion], list[Search]] | None = None
    """The rollout without the guard; by default the same."""
    words: int = 0
    """Words of the context that are read without the guard; 0 is all."""


def build(inputs: SuiteInputs) -> list[Table]:
    """One table: a row for each hack."""
    items = inputs.questions(HOPS, -(-inputs.limit // SHARE))
    rows: list[dict[str, Cell]] = []
    for hack in _hacks(inputs):
        row: dict[str, Cell] = {"turn": hack.name, "guard": hack.guard}
        with_guard = [_rewards(inputs, item, hack.searches, 0) for item in items]
        row["earned"] = _mean([hack.earned(each) for each in with_guard], with_guard, inputs.seed)
        if hack.without is not None:
            searches = hack.unguarded or hack.searches
            bare = [_rewards(inputs, item, searches, hack.words) for item in items]
            row["without"] = _mean([hack.without(each) for each in bare], bare, inputs.seed)
        rows.append(row)
    return [
        table(
            "hacks",
            "Mean reward of a turn that hacks, with its guard and without",
            {
                "turn": "turn",
                "guard": "guard",
                "earned": "with the guard",
                "without": "without it",
            },
            rows,
            f"{counted(len(items), 'question')} of {HOPS} hops; differences by trajectory, SePer",
            "95 % intervals: bootstrap over questions; none where all rewards are equal",
        )
    ]


def _hacks(inputs: SuiteInputs) -> list[Hack]:
    def gold(item: KnownQuestion) -> list[Search]:
        return [Search(fact.subject, (p,)) for fact, p in zip(item.facts, item.gold, strict=True)]

    def leaking(item: KnownQuestion, *, read: bool) -> list[Search]:
        leak = item.gold[-1]
        query = Passage(id="query", title=leak.title, text=leak.text)
        found = inputs.distractors(item, 1)
        return [gold(item)[0], Search(leak.text, (query, *found) if read else found)]

    def flood(item: KnownQuestion, words: int) -> Search:
        drawn: list[Passage] = []
        for passage in inputs.unrelated(item, len(inputs.passages)):
            if sum(len(each.text.split()) for each in drawn) > words:
                break
            drawn.append(passage)
        return Search("everything", tuple(drawn))

    def last(found: TurnRewards) -> float | None:
        return found.differences[-1]

    def both(found: TurnRewards) -> float | None:
        levels = found.levels
        return None if levels[-1] is None or levels[1] is None else levels[-1] - levels[1]

    return [
        Hack("honest search", "", gold, last),
        Hack(
            "leaked answer",
            "evidence only",
            lambda item: leaking(item, read=False),
            last,
            last,
            lambda item: leaking(item, read=True),
        ),
        Hack(
            "repeated search",
            "first time only",
            lambda item: [*gold(item), Search(item.question.text, item.gold)],
            last,
            lambda found: found.levels[-1],
        ),
        Hack(
            "flood after",
            "whole context",
            lambda item: [*gold(item), flood(item, FLOOD)],
            last,
            last,
            words=WORDS,
        ),
        Hack(
            "flood before",
            "whole context",
            lambda item: [flood(item, FLOOD), *gold(item)],
            both,
            both,
            words=WORDS,
        ),
        Hack(
            "endless flood",
            "unmeasured",
            lambda item: [flood(item, ENDLESS), *gold(item)],
            both,
            both,
            words=WORDS,
        ),
    ]


def _rewards(
    inputs: SuiteInputs,
    item: KnownQuestion,
    searches: Callable[[KnownQuestion], list[Search]],
    words: int,
) -> TurnRewards:
    run = rollout(item, searches(item))
    return rewards(inputs, run, inputs.seper(context_words=words), Rule.trajectory)


def rollout(item: KnownQuestion, searches: Sequence[Search]) -> Run:
    """A run that made these searches and read all that they brought."""
    steps: list[Step] = []
    evidence: tuple[Passage, ...] = ()
    for index, search in enumerate(searches):
        held = {passage.key for passage in evidence}
        new = tuple(passage for passage in search.passages if passage.key not in held)
        evidence += new
        steps.append(
            Step(
                index=index,
                name="search",
                kind="retrieve",
                query=search.query,
                ranked=tuple(Hit(passage=passage, score=0.0) for passage in search.passages),
                new=tuple(passage.key for passage in new),
                shown=tuple(passage.key for passage in evidence),
                evidence=evidence,
                started=MADE,
                seconds=0.0,
            )
        )
    return Run(
        id=item.question.id,
        question=item.question,
        workflow="made",
        steps=tuple(steps),
        answer=item.answer,
        started=MADE,
    )


def _mean(values: Sequence[float | None], found: Sequence[TurnRewards], seed: int) -> Measurement:
    """The mean of the measured rewards, with their number."""
    reason = next((each.reason for each in found if each.reason), "nothing to average")
    reason = reason.partition(";")[0]  # the rest names hundreds of passages
    mean = average(
        [
            Measurement(value=value, reason=None if value is not None else reason)
            for value in values
        ],
        seed=seed,
    )
    return Measurement(
        value=mean.value,
        reason=mean.reason,
        n=mean.measured,
        seed=seed,
        estimator=f"mean of {mean.total} questions(interval={mean.interval or 'none'})",
        low=mean.low,
        high=mean.high,
    )
