"""The training questions for EoR's weights, and the runs that answer them."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hopscope.api import parts
from hopscope.lab.dataset import ordering
from hopscope.lab.eor import fitting
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Question, Run

_log = logging.getLogger(__name__)


def questions(
    dataset: str, limit: int | None, order: ordering.Order
) -> tuple[Sequence[Question], ordering.Sample | None]:
    """The questions of a file, or Hopland's dev questions for `hopland`: the first `limit` in this
    order, and a record of the selection.

    Raises:
        CorpusError: a record lacks its question or its answers.
    """
    kinds: dict[str, tuple[str, str]] = {}
    if dataset == parts.HOPLAND:
        rows = hopland.questions("dev")
        kinds = {row.id: (str(row.hops), row.kind) for row in rows}
        found = [row.question for row in rows]
    else:
        found = fitting.questions(Path(dataset))
    return ordering.sample(
        found,
        limit,
        order,
        stratum=lambda question: kinds.get(question.id, ()),
        key=lambda question: question.text,
        named=lambda question: question.id,
    )


class AnsweredQuestions(NamedTuple):
    """The runs to learn from."""

    runs: list[Run]
    failed: int
    """The number of questions left out."""
    interrupted: bool
    """Whether Ctrl-C stopped it before the last question."""


def answer(workflow: Workflow, questions: Sequence[Question], deps: Deps) -> AnsweredQuestions:
    """Answer the questions in turn; those that fail are left out, with a warning."""
    runs: list[Run] = []
    failed = 0
    for number, question in enumerate(questions, start=1):
        _log.info(f"answering question {number} of {len(questions)}")
        result = run(workflow, question, deps)
        if result.status == "interrupted":
            return AnsweredQuestions(runs, failed, interrupted=True)
        if result.error:
            failed += 1
            _log.warning(f"left out question {question.text!r}: {result.error.message}")
            continue
        runs.append(result)
    return AnsweredQuestions(runs, failed, interrupted=False)
