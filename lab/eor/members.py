"""The members of EoR's pool as runs of their own, for comparisons of retrievers.

A stored run of EoR contains every member's answer and document. As a run, a member has its name in
the pool as workflow and one step, its answer, which showed the member's document: the passages, the
reader's background document, or the summary.
"""

from collections.abc import Iterable

from hopscope.lab.eor.fitting import ballot_of
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Passage, Run, Step
from hopscope.tracing.reports.shown import passages_by_key

WORKFLOW = "eor"


def members(runs: Iterable[Run]) -> list[Run]:
    """One run for each member of the pool of each run of EoR that reached its vote.

    Raises:
        UsageError: there is no such run.
    """
    voted = [run for run in runs if run.workflow == WORKFLOW and run.status == "ok"]
    if not voted:
        raise UsageError("no run of EoR with a vote: make one with `hopscope run -w eor`")
    return [member for run in voted for member in _members(run)]


def _members(run: Run) -> list[Run]:
    ballot = ballot_of(run)
    return [
        run.model_copy(
            update={"id": f"{run.id}/{name}", "workflow": name, "steps": (step,), "answer": answer}
        )
        for name, step, answer in zip(ballot.pool, _answering(run), ballot.answers, strict=True)
    ]


def _answering(run: Run) -> list[Step]:
    """The answer steps in the order of the pool, each with its document as evidence."""
    known = passages_by_key(run)
    found: list[Step] = []
    summary: Passage | None = None
    for step in run.steps:
        if step.name == "compress":
            summary = Passage(text=step.output or "")
        elif step.name == "generate":
            shown = [known[key] for key in step.shown if key in known]
            document = shown if summary is None else [summary]
            keys = tuple(passage.key for passage in document)
            found.append(step.model_copy(update={"shown": keys, "evidence": tuple(document)}))
            summary = None
    return found
