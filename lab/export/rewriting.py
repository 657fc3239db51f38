"""The sources of candidate rewrites: queries of runs, a file, or a reader."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hopscope.lab.export.preferences import INSTRUCTION
from hopscope.runtime.corpora.records.json_records import JsonRecords
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Reader
from hopscope.runtime.types import GenerationRequest, Message, Prompt, Question, Run

MAX_TOKENS = 64


def from_runs(runs: Sequence[Run]) -> list[str]:
    """The question itself, then all queries of its runs."""
    searched = [step.query for run in runs for step in run.steps if step.query]
    return list(dict.fromkeys([run.question.text for run in runs] + searched))


def from_file(path: Path) -> dict[str, list[str]]:
    """Rewrites by the question's id or, where a line gives none, by its text.

    A line is `{"id" or "question": "...", "rewrites": ["...", ...]}`.

    Raises:
        UsageError: the file contains no rewrites.
        CorpusError: a line has another form; the message has its number.
    """
    records = JsonRecords(path)
    found: dict[str, list[str]] = {}
    for record in records:
        key = record.value.get("id") or record.value.get("question")
        rewrites = record.value.get("rewrites")
        if not isinstance(key, str):
            raise records.fail(record.line, "needs a text under id or question")
        if not isinstance(rewrites, list) or not all(isinstance(r, str) for r in rewrites):
            raise records.fail(record.line, "needs a list of texts under rewrites")
        found.setdefault(key, []).extend(rewrites)
    if not found:
        raise UsageError(f"{path} holds no rewrites")
    return found


def of_question(question: Question, rewrites: Mapping[str, Sequence[str]]) -> list[str]:
    """The rewrites of a question in a file, by its id or its text."""
    return list(rewrites.get(question.id) or rewrites.get(question.text) or ())


def from_reader(
    reader: Reader,
    questions: Sequence[Question],
    *,
    n: int,
    temperature: float = 1.0,
    seed: int = 0,
) -> list[list[str]]:
    """`n` rewrites of each question, sampled.

    Raises:
        ReaderError: the reader failed.
    """
    requests = [
        GenerationRequest(
            prompt=Prompt(
                messages=(
                    Message(role="system", content=INSTRUCTION),
                    Message(role="user", content=question.text),
                )
            ),
            n=n,
            temperature=temperature,
            max_tokens=MAX_TOKENS,
            stop=("\n",),
            seed=seed,
        )
        for question in questions
    ]
    return [[reply.text for reply in replies] for replies in reader.generate(requests)]
