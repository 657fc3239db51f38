"""`hopscope.rewards`: the turn rewards of a batch of rollouts.

Invariant: the belief is measured from the question and the passages that the searches brought.
Queries, thoughts and answers of the policy are no part of it, so that an answer leaked into a query
earns nothing by itself, and a passage counts where it came first, so that a search repeated earns
exactly 0.
"""

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from hopscope.api import given, parts
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.api.given import EntailmentPart, ReaderPart
from hopscope.api.measured_run import MeasuredRun
from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.runtime.types import Run
from hopscope.tracing.rewards import turns
from hopscope.tracing.rewards.turns import Rule, TurnRewards

if TYPE_CHECKING:
    from hopscope.runtime.ports import Entailment, Reader

_log = logging.getLogger(__name__)

METER = "seper"


def rewards(
    rollouts: Sequence[Run | MeasuredRun],
    *,
    reader: ReaderPart = parts.TINY,
    meter: str = METER,
    rule: str = Rule.trajectory,
    entailment: EntailmentPart = "lexical",
    samples: int = 10,
    seed: int = 0,
    options: Mapping[str, object] | None = None,
    threads: int = 8,
) -> list[TurnRewards]:
    """The turn rewards of each rollout, in order.

    Rollouts of one question are measured one after the other and share what they have in common,
    such as the closed-book belief; questions are measured by several threads, whose requests the
    reader computes together.

    Args:
        rollouts: runs with right answers.
        reader: the reader that measures, as for `Session`; it need not be the policy. Give a
            loaded one, or a pair (model, tokenizer), to not load it at each call.
        meter: the meter of the belief.
        rule: `trajectory`, `shapley` or `leave_one_out`.
        entailment: the judge of equal meaning, of meters that need one.
        samples: answers sampled for each belief, by meters that sample.
        seed: of all sampling, the same for all rollouts.
        options: of the meter and the rule, `{"seper.weight": "uniform"}`.
        threads: questions measured at the same time. With 1, equal calls have equal results to
            the last digit.

    Returns:
        For each rollout its `levels`, `differences` and `reward`. A rollout that cannot be measured
        has None everywhere, with the reason.

    Raises:
        UsageError: an argument is unknown or has an invalid value.
        ReaderError: the reader cannot be loaded.
    """
    sharing = checked_rule(rule)
    if threads < 1:
        raise UsageError(f"threads={threads}: give 1 or more")
    runs = [_record(rollout) for rollout in rollouts]
    measuring = Measuring(
        samples=samples,
        seed=seed,
        options=given.texts(options),
        meters=(given.named(meter),),
        rules=(sharing,),
    )
    measuring.parse()  # reports mistakes before anything is loaded
    judge = given.entailment(given.named(entailment))
    model = given.reader(given.named(reader))
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        groups.setdefault(run.question.text, []).append(place)
    found: dict[int, TurnRewards] = {}
    callers = min(threads, len(groups))
    with _shared(model, callers) as shared, ThreadPoolExecutor(max(1, callers)) as pool:
        work = [
            pool.submit(_of_question, [runs[place] for place in places], shared, judge, measuring)
            for places in groups.values()
        ]
        for places, done in zip(groups.values(), work, strict=True):
            found.update(zip(places, done.result(), strict=True))
    return [found[place] for place in range(len(runs))]


def checked_rule(name: str) -> Rule:
    """The rule of a name, with `-` for `_` or not.

    Raises:
        UsageError: it gives no turn rewards.
    """
    try:
        return Rule(name.replace("-", "_"))
    except ValueError:
        raise UsageError(f"rule {name!r}: choose from {', '.join(Rule)}") from None


def _shared(model: "Reader", callers: int) -> "AbstractContextManager[Reader]":
    """The reader for so many threads."""
    from hopscope.runtime.wrappers.scheduled_reader import ScheduledReader

    return ScheduledReader(model, callers=callers) if callers > 1 else nullcontext(model)


def _of_question(
    runs: Sequence[Run], reader: "Reader", entailment: "Entailment", measuring: Measuring
) -> list[TurnRewards]:
    """The rewards of runs that share a question."""
    appraiser = Appraiser(reader, entailment, measuring)
    return [_measured(run, appraiser) for run in runs]


def _measured(run: Run, appraiser: Appraiser) -> TurnRewards:
    meter, rule = appraiser.meters[0].name, Rule(appraiser.rules[0].name)
    try:
        credits = appraiser.appraise(run).credits
    except HopscopeError as error:
        _log.warning(f"run {run.id[:12]} is not measured: {error}")
        return turns.unmeasured(run, str(error), meter=meter, rule=rule)
    found = turns.of_credits(run, credits, meter=meter, rule=rule)
    return found or turns.unmeasured(
        run, f"{meter} is not shared by {rule}", meter=meter, rule=rule
    )


def _record(rollout: object) -> Run:
    """
    Raises:
        UsageError: it is no run.
    """
    if isinstance(rollout, MeasuredRun):
        return rollout.record
    if isinstance(rollout, Run):
        return rollout
    raise UsageError(f"rollouts: give runs, not {type(rollout).__name__}")
