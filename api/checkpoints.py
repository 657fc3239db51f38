"""The settings stored with the checkpoints of a run, from which it can be resumed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hopscope.api.appraiser import RULES
from hopscope.api.spending import Spending
from hopscope.runtime.types import Question, Record
from hopscope.tracing.meters import DEFAULT_METERS

if TYPE_CHECKING:
    from hopscope.runtime.execution.checkpoints import Checkpoints


class CheckpointSettings(Record):
    """The settings of a run: names and texts, from which all parts are rebuilt."""

    question: Question
    workflow: str
    options: dict[str, str]
    corpus: str
    reader: str
    entailment: str
    samples: int
    seed: int
    meters: tuple[str, ...] = DEFAULT_METERS
    """Empty: the question is only answered."""
    rules: tuple[str, ...] = RULES
    spend: Spending = Spending()


@contextmanager
def opened(path: Path | None) -> "Iterator[Checkpoints | None]":
    """The checkpoints in a file; None without one."""
    if path is None:
        yield None
        return
    from hopscope.runtime.execution.checkpoints import Checkpoints

    with Checkpoints.open(path) as checkpoints:
        yield checkpoints
