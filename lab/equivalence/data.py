"""Human judgements of answers, in the format of EVOUNA.

A JSON list or JSON lines of `{question, golden_answer, improper, answer_SYSTEM, judge_SYSTEM, …}`:
the golds are aliases with "/" between them, `judge_` is a person's verdict on the answer, and
`improper` marks excluded questions. The keys name the systems. A record with a null in one of these
fields is left out and reported: the published file of Natural Questions has two.

Source: Wang et al. 2023, "Evaluating Open-QA Evaluation" (arXiv 2305.12421).
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from hopscope.runtime.corpora.records.json_records import JsonObject, JsonRecords
from hopscope.runtime.errors import CorpusError
from hopscope.runtime.types import Record
from hopscope.tracing.scoring.correctness import Answered

Part = Literal["all", "train", "held-out"]
"""`train` are the questions that the shipped model may have seen, `held-out` the others."""

SALT = "hopscope-equivalence:"
MEAN = "mean"
"""The name of the mean in lists of systems; no system may have it."""


class Judged(Record):
    """One question with the answers of several systems."""

    record: int
    """Its number in the file, from 1."""
    question: str
    golds: tuple[str, ...]
    answers: dict[str, str]
    """By system."""
    right: dict[str, bool]
    """By system, a person's verdict."""

    def answered(self, system: str) -> Answered:
        """One of the answers, in the form for entailments."""
        return Answered(self.question, self.golds, self.answers[system])


class LeftOut(Record):
    """A record that was left out because a field is null."""

    record: int
    """Its number in the file, from 1."""
    line: int
    """The line it begins on, from 1."""
    question: str | None
    fields: tuple[str, ...]
    """The fields that are null."""


def part_of(question: str) -> Part:
    """The part of a question: `train` for half of them, by a hash of the text. It needs no list
    and keeps equal questions together."""
    return "train" if sha256((SALT + question).encode()).digest()[0] < 128 else "held-out"


def judgements(
    path: Path, part: Part = "all", *, tell: Callable[[LeftOut], None] | None = None
) -> list[Judged]:
    """The proper questions of a file, in file order; all have the same systems.

    Args:
        tell: called with each record that is left out because a field is null.

    Raises:
        CorpusError: a record is not of the format, or there is none.
    """
    records = JsonRecords(path)
    found: list[Judged] = []
    systems: list[str] | None = None
    for number, record in enumerate(records, start=1):
        row = _Row(records, record, number)
        systems = systems or row.systems()
        if nulls := row.nulls(systems):
            if tell and (nulls.question is None or part in ("all", part_of(nulls.question))):
                tell(nulls)
        elif not row.flag("improper", default=False):
            found.append(row.judged(systems))
    if systems is None:
        raise CorpusError(f"{path} holds no records")
    kept = [judged for judged in found if part in ("all", part_of(judged.question))]
    if not kept:
        raise CorpusError(f"{path} holds no proper questions of the part {part!r}")
    return kept


class _Row:
    """A record that checks each field when it is read."""

    def __init__(self, records: JsonRecords, record: JsonObject, number: int) -> None:
        self._records = records
        self._record = record
        self._number = number

    def systems(self) -> list[str]:
        keys = self._record.value
        found = [key.removeprefix("answer_") for key in keys if key.startswith("answer_")]
        if not found:
            raise self._fail(
                "has no answer_SYSTEM: give a file in EVOUNA's format, see docs/equivalence.md"
            )
        if MEAN in found:
            raise self._fail(
                f"has a system called {MEAN!r}, which names the mean over systems: give it another "
                "name"
            )
        return found

    def nulls(self, systems: list[str]) -> LeftOut | None:
        """The required fields that are null; an excluded question requires none."""
        value = self._record.value
        if value.get("improper") is True:
            return None
        needed = ["question", "golden_answer", "improper"]
        needed += [f"{part}_{system}" for system in systems for part in ("answer", "judge")]
        fields = tuple(key for key in needed if key in value and value[key] is None)
        if not fields:
            return None
        question = value.get("question")
        return LeftOut(
            record=self._number,
            line=self._record.line,
            question=question if isinstance(question, str) else None,
            fields=fields,
        )

    def judged(self, systems: list[str]) -> Judged:
        return Judged(
            record=self._number,
            question=self._text("question"),
            golds=tuple(self._text("golden_answer").split("/")),
            answers={system: self._text(f"answer_{system}") for system in systems},
            right={system: self.flag(f"judge_{system}") for system in systems},
        )

    def flag(self, key: str, default: bool | None = None) -> bool:
        value: Any = self._record.value.get(key, default)
        if not isinstance(value, bool):
            raise self._fail(f"needs true or false under {key!r}")
        return value

    def _text(self, key: str) -> str:
        value: Any = self._record.value.get(key)
        if not isinstance(value, str):
            raise self._fail(f"needs a text under {key!r}")
        return value

    def _fail(self, problem: str) -> CorpusError:
        return self._records.fail(self._record.line, f"record {self._number} {problem}")
