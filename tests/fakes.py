"""Ports that answer from a script and raise when it runs out, which proves how often they were
asked; and makers of records that tests read easily."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hopscope.runtime.ports import Branch, BranchRequest, Probabilities, Statement
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Measurement,
    Passage,
    Question,
    Run,
    Scored,
    ScoreRequest,
    Step,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENTAILS, NEUTRAL, CONTRADICTS = (
    Probabilities(1, 0, 0),
    Probabilities(0, 1, 0),
    Probabilities(0, 0, 1),
)


def reply(text: str, logprobs: Sequence[float] = (-0.5,), **fields: object) -> Generation:
    """A generation whose tokens are as many as its log-probabilities."""
    count = len(logprobs)
    tokens = ("",) * (count - 1) + (text,) if count else ()
    values = {"tokens": tokens, "token_ids": tuple(range(count)), **fields}
    return Generation.model_validate({"text": text, "logprobs": tuple(logprobs), **values})


def scored(entropies: Sequence[float], logprobs: Sequence[float] = (), **fields: object) -> Scored:
    """A scored continuation with these entropies."""
    count = len(entropies)
    return Scored.model_validate(
        {
            "tokens": tuple(f"t{i}" for i in range(count)),
            "token_ids": tuple(range(count)),
            "logprobs": tuple(logprobs) or (0.0,) * count,
            "entropies": tuple(entropies),
            **fields,
        }
    )


class ScriptedReader:
    """Gives the scripted replies, one list for each request, and keeps what it was asked."""

    name = "scripted"

    def __init__(
        self, replies: Sequence[Sequence[Generation]] = (), scores: Sequence[Scored] = ()
    ) -> None:
        self._replies = list(replies)
        self._scores = list(scores)
        self.generated: list[list[GenerationRequest]] = []
        """The requests of each call."""
        self.scored: list[list[ScoreRequest]] = []

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        self.generated.append(list(requests))
        if len(requests) > len(self._replies):
            raise AssertionError(f"out of replies: asked for {len(requests)}")
        return [list(self._replies.pop(0)) for _ in requests]

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        self.scored.append(list(requests))
        if len(requests) > len(self._scores):
            raise AssertionError(f"out of scores: asked for {len(requests)}")
        return [self._scores.pop(0) for _ in requests]


class Ending:
    """A random model seldom ends by itself: where it is cut off, its reply is taken to end. The
    model must be able to give more samples."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.name, self.score = inner, inner.name, inner.score

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        return self._ended(self._inner.generate(requests))

    def more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        return self._ended(self._inner.more(requests, first=first))

    def branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        return [
            [branch._replace(cut=False) for branch in branches]
            for branches in self._inner.branch(requests)
        ]

    def _ended(self, found: list[list[Generation]]) -> list[list[Generation]]:
        ended = {"finish_reason": "stop"}
        return [[reply.model_copy(update=ended) for reply in replies] for replies in found]


class ReaderByEvidence:
    """Replies by which passages the prompt shows; asked about any other evidence it raises."""

    name = "by-evidence"

    def __init__(self, replies: Mapping[tuple[str, ...], Sequence[Generation]]) -> None:
        self._replies = replies
        self.generated: list[list[GenerationRequest]] = []

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        self.generated.append(list(requests))
        return [list(self._replies[request.prompt.shown]) for request in requests]

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        raise AssertionError("not asked to score")


class ScriptedEntailment:
    """Knows the relations in its table, (premise, hypothesis); raises about any other pair."""

    name = "scripted"

    def __init__(self, table: Mapping[tuple[str, str], Probabilities]) -> None:
        self._table = table
        self.calls: list[list[Statement]] = []

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        self.calls.append(list(statements))
        missing = [s for s in statements if (s.premise, s.hypothesis) not in self._table]
        if missing:
            raise AssertionError(f"not in the script: {missing}")
        return [self._table[s.premise, s.hypothesis] for s in statements]


class FunctionMeter:
    """A utility that is a function of the keys of the passages; counts what it is asked."""

    name = "function"

    def __init__(self, value: Callable[[tuple[str, ...]], float | None]) -> None:
        self._value = value
        self.calls: list[list[tuple[str, ...]]] = []

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        asked = [tuple(passage.key for passage in evidence) for evidence in evidences]
        self.calls.append(asked)
        values = [self._value(keys) for keys in asked]
        return [
            Measurement(value=v, reason="no value" if v is None else None, estimator="function")
            for v in values
        ]


def passage(key: str) -> Passage:
    return Passage(id=key, title=key, text=f"text of {key}")


def step(index: int, new: Sequence[str] = (), **fields: object) -> Step:
    """A retrieval step; everything new is shown at once unless `shown` says otherwise."""
    values = {
        "index": index,
        "name": "retrieve",
        "kind": "retrieve",
        "new": tuple(new),
        "shown": tuple(new),
        "started": NOW,
        "seconds": 0.0,
        **fields,
    }
    return Step.model_validate(values)


def run_of(*news: Sequence[str], answers: Sequence[str] = ("gold",)) -> Run:
    """A run whose t-th step added the passages `news[t]` to the evidence."""
    steps: list[Step] = []
    evidence: tuple[Passage, ...] = ()
    for index, new in enumerate(news):
        evidence += tuple(passage(key) for key in new)
        steps.append(step(index, new, evidence=evidence))
    return Run(
        id="run",
        question=Question(text="Who?", answers=tuple(answers)),
        workflow="test",
        steps=tuple(steps),
        started=NOW,
    )
