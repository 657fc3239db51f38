"""The members of EoR's pool as runs of their own, so that retrievers can be compared.

A stored run of EoR holds every member's answer and what it was written from. As a run, a member is
called by its name in the pool and has one step, that of its answer, which showed the member's
document: the passages, the text the reader had recalled, or the summary.
"""

from collections.abc import Iterable

from hopscope.lab.eor.fitting import ballot_of
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Passage, Run, Step
from hopscope.tracing.reports.shown import passages_by_key

WORKFLOW = "eor"


def members(runs: Iterable[Run]) -> list[Run]:
    """One run for each member of the pool of each run of EoR that came to a vote; others have no
    members.

    Raises:
        UsageError: no run has any.
    """
    voted = [run for run in runs if run.workflow == WORKFLOW and run.status == "ok"]
    if not voted:
        raise UsageError("no run of EoR that came to a vote: make one with `hopscope run -w eor`")
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
    """The steps that answered, in the order of the pool, each with its document as evidence."""
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
