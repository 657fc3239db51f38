"""Right answers from a file: JSON objects with `question` or `id`, and `answers` (or `answer`)."""

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
        found = cls()
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

    def of(self, question: Question) -> Question:
        """The question with its right answers, by its id, else by its text; as it is where the file
        does not have it."""
        answers = self.by_id.get(question.id) or self.by_text.get(_folded(question.text))
        return question.model_copy(update={"answers": answers}) if answers else question


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
