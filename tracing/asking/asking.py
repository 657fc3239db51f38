"""Requests to a reader about many contexts in one call; contexts that do not fit get a reason."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hopscope.runtime.errors import CapabilityError, ContextOverflowError
from hopscope.runtime.ports import Reader
from hopscope.runtime.prompting import loading
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Passage,
    Prompt,
    Scored,
    ScoreRequest,
)

STOP = ("\n", "Question:", "Context:")
"""Where an answer ends, as in SePer's code."""

TOLD = frozenset({"logprobs", "top_logprobs"})
"""Options whose refusal shows in the value itself: it is missing, or marked approximate."""

Content = tuple[str, ...]


class Unmeasured(NamedTuple):
    """The reason why a value is missing."""

    reason: str


def content(evidence: Sequence[Passage]) -> Content:
    """The hashes of the evidence that the reader sees; equal contents are one evidence set."""
    return tuple(passage.content_hash for passage in evidence)


def prompt(question: str, evidence: Sequence[Passage], prompts: str = "") -> Prompt:
    """The meters' prompt, which asks for the bare answer.

    Args:
        prompts: a set of prompts, or its folder; empty is the default.

    Raises:
        UsageError: the set cannot be used.
    """
    return loading.chosen(prompts).render("meter/answer", evidence, question=question)


def prompt_name(prompts: str) -> str:
    """The prompt's name in estimators: that of the default, or the hash of the set."""
    return loading.load(prompts).hash if prompts else "short_answer"


def requests(
    question: str,
    evidences: Sequence[tuple[Passage, ...]],
    *,
    n: int,
    temperature: float,
    max_tokens: int,
    seed: int,
    prompts: str = "",
) -> dict[Content, GenerationRequest]:
    """One request for each distinct evidence set, in order of first appearance.

    No evidence gives the closed-book prompt.
    """
    return {
        content(evidence): GenerationRequest(
            prompt=prompt(question, evidence, prompts),
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
    """The requests with one thought each, and the reasons of those whose thought did not end.

    The thought is the first sample's. Requests to a reader that does not think stay as they are.
    """
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
    """All requests in one call. A request that does not fit the reader, or with a reply that ended
    within its thought, is unmeasured; the others are not affected."""
    try:
        return [answered(replies) for replies in reader.generate(asked)]
    except ContextOverflowError:
        return [_generate_one(reader, request) for request in asked]
    except CapabilityError as error:
        return [Unmeasured(str(error)) for _ in asked]


def _generate_one(reader: Reader, request: GenerationRequest) -> list[Generation] | Unmeasured:
    try:
        return answered(reader.generate([request])[0])
    except ContextOverflowError as error:
        return overflow(request.prompt, error)


def score(reader: Reader, asked: Sequence[ScoreRequest]) -> list[Scored | Unmeasured]:
    """All requests in one call. A request that does not fit the reader is unmeasured; so are all
    where the reader cannot score given texts."""
    try:
        return list(reader.score(asked))
    except CapabilityError as error:
        return [Unmeasured(str(error)) for _ in asked]
    except ContextOverflowError as error:
        if len(asked) == 1:
            return [overflow(asked[0].prompt, error)]
        middle = len(asked) // 2
        return [*score(reader, asked[:middle]), *score(reader, asked[middle:])]


def answered(replies: list[Generation]) -> list[Generation] | Unmeasured:
    """The replies, if each has an answer. The longest thoughts are those without an answer, so a
    belief from the other replies would not be the reader's."""
    reasons = [reply.unanswered for reply in replies if reply.unanswered]
    if not reasons:
        return replies
    return Unmeasured(f"{len(reasons)} of {len(replies)} replies have no answer: {reasons[0]}")


def as_asked(estimator: str, replies: Iterable[Generation]) -> str:
    """The estimator with the options that a server refused: without them the replies come from
    another distribution than the requested one. Missing log-probabilities show elsewhere."""
    refused = {name for reply in replies for name in reply.refused} - TOLD
    return f"{estimator} without {'+'.join(sorted(refused))}" if refused else estimator


def cut_off(replies: Iterable[Generation]) -> int:
    """The number of replies that `max_tokens` cut off. Their meaning is unknown."""
    return sum(reply.finish_reason == "length" for reply in replies)


def overflow(prompt: Prompt, error: ContextOverflowError) -> Unmeasured:
    """The reason of a context that does not fit. It is not shortened, because that would measure
    another context than the requested one."""
    shown = prompt.shown
    if not shown:
        return Unmeasured(f"{error}; there was no passage to drop")
    return Unmeasured(f"{error}; all of {', '.join(shown)} were shown, none was dropped")
