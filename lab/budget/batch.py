"""Allocate one total of tokens to a batch of questions by their predicted gains.

The gain of a number of retrievals is predicted from the question and one closed-book draft; see
`tracing.learned.value_file.Plan`.
"""

from collections.abc import Sequence
from pathlib import Path

from hopscope.lab.budget.allocate import Allocation, Option, allocate
from hopscope.runtime.errors import CorpusError, UsageError, unreadable
from hopscope.runtime.ports import Moment, Reader
from hopscope.runtime.texts.literals import json_value
from hopscope.runtime.types import Question
from hopscope.tracing.learned.value_file import ValueFile
from hopscope.tracing.signals.gathering import signals


def questions_of(path: Path) -> list[Question]:
    """The questions of a file of JSON lines with `question`.

    Raises:
        UsageError: there is no such file, or nothing in it.
        CorpusError: a line is none of these.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(unreadable(path, error, "questions")) from None
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(Question(text=json_value(line)["question"]))
        except (ValueError, KeyError, TypeError):
            raise CorpusError(
                f"{path}, line {number}: expected an object with `question`"
            ) from None
    if not found:
        raise UsageError(f"{path} holds no questions")
    return found


def share_out(
    batch: Sequence[Question], file: ValueFile, reader: Reader, *, total: float, seed: int = 0
) -> Allocation:
    """Spend a total of tokens, beyond closed-book answers, for the highest predicted gain.

    Raises:
        UsageError: the file predicts no plans.
        ReaderError: the model failed.
    """
    if not file.plans:
        raise UsageError("the policy file has no plans: learn it again with `hopscope budget fit`")
    return allocate([options(each, file, reader, seed) for each in batch], total)


def options(question: Question, file: ValueFile, reader: Reader, seed: int) -> list[Option]:
    """The options of a question: 0, 1, 2, ... retrievals."""
    known = file.told(question.text) | signals(Moment(question, seed=seed), reader)
    medians = file.heads[0].medians
    inputs = [known.get(name, medians.get(name, 0.0)) for name in file.signals]
    found = [Option(retrievals=0, cost=0.0, value=0.0)]
    for number, plan in enumerate(file.plans, start=1):
        cost = max(found[-1].cost, plan.cost.predict(inputs))
        found.append(Option(retrievals=number, cost=cost, value=plan.gain.predict(inputs)))
    return found
