"""Asking a reader about many contexts in one call, and what to do when one does not fit."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hopscope.runtime.errors import ContextOverflow, NotOffered
from hopscope.runtime.ports import Reader
from hopscope.runtime.prompts import short_answer
from hopscope.runtime.types import Generation, GenerationRequest, Passage

STOP = ("\n", "Question:", "Context:")
"""Where an answer ends, as in SePer's code."""

TOLD = frozenset({"logprobs", "top_logprobs"})
"""Options whose absence a value shows by itself: there is none, or it is marked approximate."""

Content = tuple[str, ...]


class Unmeasured(NamedTuple):
    """Why there is no number."""

    reason: str


def content(evidence: Sequence[Passage]) -> Content:
    """What the reader is shown: evidence sets with equal content are one and the same."""
    return tuple(passage.content_hash for passage in evidence)


def requests(
    question: str,
    evidences: Sequence[tuple[Passage, ...]],
    *,
    n: int,
    temperature: float,
    max_tokens: int,
    seed: int,
) -> dict[Content, GenerationRequest]:
    """One request for each distinct evidence set, in order of first appearance.

    No evidence gives the closed-book prompt.
    """
    return {
        content(evidence): GenerationRequest(
            prompt=short_answer(question, evidence),
            n=n,
            temperature=temperature,
            max_tokens=max_tokens,
            stop=STOP,
            seed=seed,
        )
        for evidence in evidences
    }


def thought_once(
    reader: Reader, asked: Mapping[Content, GenerationRequest]
) -> tuple[dict[Content, GenerationRequest], dict[Content, Unmeasured]]:
    """The requests with one thought given to each, and those for which none came to an end. The
    thought is that of the first sample; a reader that does not think is asked as before."""
    ready: dict[Content, GenerationRequest] = {}
    failed: dict[Content, Unmeasured] = {}
    first = [request.model_copy(update={"n": 1}) for request in asked.values()]
    for (key, request), replies in zip(asked.items(), generate(reader, first), strict=True):
        if isinstance(replies, Unmeasured):
            failed[key] = replies
        else:
            thought = replies[0].thought
            given = {"thought": thought.text} if thought else {}
            ready[key] = request.model_copy(update=given)
    return ready, failed


def generate(
    reader: Reader, asked: Sequence[GenerationRequest]
) -> list[list[Generation] | Unmeasured]:
    """All requests in one call. If one does not fit the reader, only that one is unmeasured; and so
    is one of which a reply ended within its thought."""
    try:
        return [answered(replies) for replies in reader.generate(asked)]
    except ContextOverflow:
        return [_generate_one(reader, request) for request in asked]
    except NotOffered as error:
        return [Unmeasured(str(error)) for _ in asked]


def _generate_one(reader: Reader, request: GenerationRequest) -> list[Generation] | Unmeasured:
    try:
        return answered(reader.generate([request])[0])
    except ContextOverflow as error:
        return overflow(request, error)


def answered(replies: list[Generation]) -> list[Generation] | Unmeasured:
    """The replies, if each has an answer. Those that think longest are the ones without, and a
    belief of the others would not be the reader's."""
    reasons = [reply.unanswered for reply in replies if reply.unanswered]
    if not reasons:
        return replies
    return Unmeasured(f"{len(reasons)} of {len(replies)} replies have no answer: {reasons[0]}")


def as_asked(estimator: str, replies: Iterable[Generation]) -> str:
    """The estimator, with the options that a server refused: without them the replies are of
    another distribution than was asked for. Missing log-probabilities are told elsewhere."""
    refused = {name for reply in replies for name in reply.refused} - TOLD
    return f"{estimator} without {'+'.join(sorted(refused))}" if refused else estimator


def cut_off(replies: Iterable[Generation]) -> int:
    """How many replies `max_tokens` ended. What these would have said nobody knows."""
    return sum(reply.finish_reason == "length" for reply in replies)


def overflow(request: GenerationRequest, error: ContextOverflow) -> Unmeasured:
    """The reason why a context that does not fit has no number: it is not made to fit here, as
    another context would be measured than was asked about."""
    shown = request.prompt.shown
    if not shown:
        return Unmeasured(f"{error}; there was no passage to drop")
    return Unmeasured(f"{error}; all of {', '.join(shown)} were shown, none was dropped")
