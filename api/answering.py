"""One question: run the workflow, store the run, measure it, store the credits, emit their spans.

Invariant: the run is in the database before it is measured, so that nothing of it is lost when
measuring stops; and it is returned even if it could not be stored.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hopscope.api.appraiser import Appraiser
from hopscope.api.measured_run import MeasuredRun
from hopscope.runtime.errors import HopscopeError
from hopscope.runtime.execution.run import Exited, Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Question, ThoughtEnd
from hopscope.tracing.reports.appraised import Appraised

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from hopscope.store.store import Store

_log = logging.getLogger(__name__)


class RunResult(NamedTuple):
    """The result of a question."""

    run: MeasuredRun
    interrupted: bool
    """Whether Ctrl-C stopped the run, its storage or its measurement."""


def answer(
    question: Question,
    workflow: Workflow,
    deps: Deps,
    appraiser: Appraiser | None,
    store: "Store",
    *,
    checkpointer: "BaseCheckpointSaver[Any] | None" = None,
    run_id: str | None = None,
    prices: Path | None = None,
) -> RunResult:
    """Run, store and measure. Failures do not raise: the result's `error` and `problems` report
    them. Without an `appraiser` nothing is measured.

    Raises:
        UsageError: the question is empty, or the run was begun with other settings.
        Exited: a part called `sys.exit`; the failed run is stored.
    """
    from hopscope.tracing.spans.evaluators import emit

    _log.info(f"running {workflow.name}")
    try:
        result = run(workflow, question, deps, checkpointer=checkpointer, run_id=run_id)
    except Exited as exited:
        failed = exited.run
        if failed.error and _Afterwards(False).do("stored", lambda: store.save(failed)):
            _log.warning(f"run {failed.id[:12]} failed and is stored: {failed.error.message}")
        raise
    replies = (g for step in result.steps for e in step.exchanges for g in e.generations)
    tell_forced(Counter(g.thought.end for g in replies if g.thought is not None))
    after = _Afterwards(result.status == "interrupted")
    stored = after.do("stored", lambda: store.save(result))
    measured: list[Appraised] = []
    if result.steps and result.status != "interrupted" and appraiser is not None:
        _log.info("measuring the worth of each step")

        def measure() -> None:
            measured.append(appraiser.appraise(result))
            emit(result, measured[0].credits, capture=deps.capture_content)

        if after.do("appraised", measure) and stored:
            [(credits, appraisal, games)] = measured
            after.do(
                "stored with its credits", lambda: store.save_credits(credits, [appraisal], games)
            )
    measured_run = MeasuredRun(
        result,
        [credit for each in measured for credit in each.credits],
        [each.appraisal for each in measured],
        [game for each in measured for game in each.games],
        problems=after.problems,
        prices=prices,
    )
    return RunResult(measured_run, after.interrupted)


class _Afterwards:
    """The actions on a finished run; it is returned even if they fail."""

    def __init__(self, interrupted: bool) -> None:
        self.interrupted = interrupted
        self.problems: list[str] = []

    def do(self, deed: str, action: Callable[[], object]) -> bool:
        """Returns True if the action succeeded."""
        try:
            action()
        except HopscopeError as error:
            told = str(error)
        except KeyboardInterrupt:
            told, self.interrupted = "stopped", True
        except Exception as error:  # a bug in Hopscope must not lose the finished run
            fault = "this is a fault of Hopscope, please report it"
            told = f"{type(error).__name__}: {error}; {fault}"
        else:
            return True
        self.problems.append(f"the run is not {deed}: {told}")
        _log.warning(self.problems[-1])
        return False


def tell_forced(ends: Mapping[ThoughtEnd, int]) -> None:
    """Warn about thoughts that were closed by force.

    Args:
        ends: how many thoughts ended in which way.
    """
    if forced := ends.get("forced", 0):
        _log.warning(
            f"{forced:,} of {sum(ends.values()):,} thoughts were closed by force, most often at "
            "their limit; thinking=TOKENS (--thinking TOKENS) raises it"
        )
