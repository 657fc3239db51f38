"""The sources of candidate rewrites: queries of runs, a file, or a reader."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hopscope.lab.export.preferences import INSTRUCTION
from hopscope.runtime.corpora.records.json_records import JsonRecords
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Reader
from hopscope.runtime.types import GenerationRequest, Message, Prompt, Question, Run

MAX_TOKENS = 64


class GivenRewrites(NamedTuple):
    """What a file gives for a question."""

    queries: list[str]
    history: tuple[str, ...]
    """The turns of the conversation before it."""


NOTHING = GivenRewrites([], ())


def from_runs(runs: Sequence[Run]) -> list[str]:
    """The question itself, then all queries of its runs."""
    searched = [step.query for run in runs for step in run.steps if step.query]
    return list(dict.fromkeys([run.question.text for run in runs] + searched))


def from_file(path: Path) -> dict[str, GivenRewrites]:
    """Rewrites by the question's id or, where a line gives none, by its text.

    A line is `{"id" or "question": "...", "rewrites": ["...", ...]}`; that of a question of a
    conversation has the turns before it under `history`, the user's first. Several lines of one
    question give it all their rewrites, and the last history.

    Raises:
        UsageError: the file contains no rewrites.
        CorpusError: a line has another form; the message has its number.
    """
    records = JsonRecords(path)
    found: dict[str, GivenRewrites] = {}
    for record in records:
        key = record.value.get("id") or record.value.get("question")
        rewrites = _texts(record.value.get("rewrites"))
        history = _texts(record.value.get("history") or [])
        if not isinstance(key, str):
            raise records.fail(record.line, "needs a text under id or question")
        if rewrites is None:
            raise records.fail(record.line, "needs a list of texts under rewrites")
        if history is None:
            raise records.fail(record.line, "needs a list of texts under history, or none")
        before = found.get(key, NOTHING)
        found[key] = GivenRewrites([*before.queries, *rewrites], tuple(history) or before.history)
    if not found:
        raise UsageError(f"{path} holds no rewrites")
    return found


def _texts(value: object) -> list[str] | None:
    """The list, if it is one of texts."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    return None


def of_question(question: Question, rewrites: Mapping[str, GivenRewrites]) -> GivenRewrites:
    """What a file gives for a question, by its id or its text."""
    return rewrites.get(question.id) or rewrites.get(question.text) or NOTHING


def from_reader(
    reader: Reader,
    questions: Sequence[str],
    *,
    n: int,
    temperature: float = 1.0,
    seed: int = 0,
) -> list[list[str]]:
    """`n` rewrites of each question, sampled; one of a conversation has its history in its text.

    Raises:
        ReaderError: the reader failed.
    """
    requests = [
        GenerationRequest(
            prompt=Prompt(
                messages=(
                    Message(role="system", content=INSTRUCTION),
                    Message(role="user", content=question),
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
