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
from typing import TYPE_CHECKING, Any

from hopscope.api import given, parts
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.api.given import EntailmentPart, ReaderPart
from hopscope.api.measured_run import MeasuredRun
from hopscope.api.turn_rewards import rollouts as rollout_records
from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.runtime.types import Question, Run
from hopscope.store.importers import recognition
from hopscope.store.trajectories.sources import Unread
from hopscope.store.trajectories.trajectory import NO_TIME
from hopscope.tracing.rewards import turns
from hopscope.tracing.rewards.turns import Rule, TurnRewards

if TYPE_CHECKING:
    from hopscope.runtime.ports import Entailment, Reader

_log = logging.getLogger(__name__)

METER = "seper"


def rewards(
    rollouts: "Sequence[Run | MeasuredRun | Unread | Mapping[str, Any]]",
    *,
    format: str = recognition.AUTO,
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
        rollouts: runs with right answers, or records of rollouts as they stand in the files of
            `hopscope import`: a transcript with tool calls in OpenAI's format, say, as in
            `{"question": ..., "answers": [...], "messages": [...]}`.
        format: of such records; `auto` finds it. All of a batch have the same.
        reader: the reader that measures, as for `Session`; it need not be the policy. Give a
            loaded one, or a pair (model, tokenizer), to not load it at each call.
        meter: the meter of the belief.
        rule: `trajectory`, `shapley` or `leave-one-out`, also spelled `leave_one_out`.
        entailment: the judge of equal meaning, of meters that need one.
        samples: answers sampled for each belief, by meters that sample.
        seed: of all sampling, the same for all rollouts.
        options: of the meter and the rule, `{"seper.weight": "uniform"}`.
        threads: questions measured at the same time. With 1, equal calls have equal results to
            the last digit.

    Returns:
        For each rollout its `levels`, `differences` and `reward`. A rollout that cannot be read or
        measured has None everywhere, with the reason.

    Raises:
        UsageError: an argument is unknown or has an invalid value.
        ReaderError: the reader cannot be loaded.
    """
    sharing = checked_rule(rule)
    if threads < 1:
        raise UsageError(f"threads={threads}: give 1 or more")
    runs = _read(rollouts, format)
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
    groups: dict[str, list[tuple[int, Run]]] = {}
    found: dict[int, TurnRewards] = {}
    for place, run in enumerate(runs):
        if isinstance(run, Unread):
            found[place] = _unread(run, meter=meter, rule=sharing)
        else:
            groups.setdefault(run.question.text, []).append((place, run))
    callers = min(threads, len(groups))
    with _shared(model, callers) as shared, ThreadPoolExecutor(max(1, callers)) as pool:
        work = [
            pool.submit(_of_question, [run for _, run in group], shared, judge, measuring)
            for group in groups.values()
        ]
        try:
            for group, done in zip(groups.values(), work, strict=True):
                found.update(zip((place for place, _ in group), done.result(), strict=True))
        except BaseException:  # after an error or Ctrl-C no further question is begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [found[place] for place in range(len(runs))]


def checked_rule(name: str) -> Rule:
    """The rule of a name, with `-` for `_` or not.

    Raises:
        UsageError: it gives no turn rewards.
    """
    try:
        return Rule(name.replace("-", "_"))
    except ValueError:
        choices = ", ".join(rule.replace("_", "-") for rule in Rule)
        raise UsageError(f"rule {name!r}: choose from {choices}") from None


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


def _unread(problem: Unread, *, meter: str, rule: Rule) -> TurnRewards:
    blank = Run(id=problem.where, question=Question(text=""), workflow="", started=NO_TIME)
    return turns.unmeasured(blank, problem.problem, meter=meter, rule=rule)


def _read(rollouts: Sequence[object], format: str) -> list[Run | Unread]:
    """
    Raises:
        UsageError: one is neither a run nor a record, or the records are of no known format.
    """
    records = [rollout for rollout in rollouts if isinstance(rollout, Mapping)]
    read = iter(rollout_records.of_records(records, format))
    return [next(read) if isinstance(each, Mapping) else _run(each) for each in rollouts]


def _run(rollout: object) -> Run | Unread:
    """
    Raises:
        UsageError: it is no run.
    """
    if isinstance(rollout, MeasuredRun):
        return rollout.record
    if isinstance(rollout, Run | Unread):
        return rollout
    raise UsageError(f"rollouts: give runs or records of rollouts, not {type(rollout).__name__}")
