"""Right answers from a file: JSON objects with `question` or `id`, and `answers` (or `answer`)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hopscope.runtime.corpora.records.fields import identity, string
from hopscope.runtime.corpora.records.json_records import JsonRecords
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Question
from hopscope.store.trajectories import fields


@dataclass(frozen=True)
class Golds:
    """Right answers, by id and by question."""

    name: str = ""
    """Of the file."""
    by_id: dict[str, tuple[str, ...]] = field(default_factory=dict)
    by_text: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By the question without differences of case and spaces."""

    @classmethod
    def read(cls, path: Path) -> "Golds":
        """
        Raises:
            CorpusError: a line is no JSON object.
            UsageError: a line names no question or no answer, or contradicts an earlier one.
        """
        found = cls(name=path.name)
        for line, value in JsonRecords(path):
            where = f"{path}, line {line}"
            try:
                answers = fields.right(value, (*fields.GOLDS, "answer"))
                id, text = identity(value, *fields.IDS), _folded(string(value, "question"))
            except MalformedRecordError as problem:
                raise UsageError(f"{where}: {problem}") from None
            if not answers or not (id or text):
                raise UsageError(f"{where}: give 'question' or 'id', and 'answers'")
            for known, key in ((found.by_id, id), (found.by_text, text)):
                if key and known.setdefault(key, answers) != answers:
                    raise UsageError(f"{where}: {key!r} has other answers on an earlier line")
        return found

    def of(self, question: Question) -> tuple[str, ...]:
        """The right answers of a question, by its id, else by its text; empty where the file does
        not have it."""
        return self.by_id.get(question.id) or self.by_text.get(_folded(question.text)) or ()

    def advice(self, asked: Question) -> Iterator[str]:
        """What to say if no question was found in the file, such as `asked`."""
        known = next(iter([*self.by_text, *self.by_id]), None)
        if known is None:
            yield f"{self.name} holds no right answers"
            return
        by = f" (id {asked.id!r})" if asked.id else ""
        yield (
            f"{self.name} has right answers to none of the questions: it has {known!r}, say, and "
            f"asked was {asked.text!r}{by}"
        )


def answered(question: Question, answers: tuple[str, ...]) -> Question:
    """The question with these right answers, or its own if there are none."""
    return question.model_copy(update={"answers": answers}) if answers else question


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
