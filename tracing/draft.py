"""The short answer that a reader would give now: what label-free policies go by.

Invariant: the request depends on question, evidence and seed alone. A workflow that has asked the
same (`naive`, Iter-RetGen) has the reply in its record, and it costs nothing again.
"""

from collections.abc import Sequence
from math import exp

from hopscope.runtime.answers import normalise
from hopscope.runtime.errors import ContextOverflow, ReaderError
from hopscope.runtime.ports import Moment, Reader
from hopscope.runtime.prompts import short_answer
from hopscope.runtime.types import Generation, GenerationRequest, Passage, Step

MAX_TOKENS = 32


def request(moment: Moment, evidence: Sequence[Passage]) -> GenerationRequest:
    """Greedy, in the prompt of naive RAG."""
    return GenerationRequest(
        prompt=short_answer(moment.question.text, evidence),
        max_tokens=MAX_TOKENS,
        stop=("\n",),
        seed=moment.seed,
    )


def draft(moment: Moment, reader: Reader, evidence: Sequence[Passage] | None = None) -> Generation:
    """The answer from the present evidence, or from another; from the run's record, where it
    is there. Evidence that does not fit the reader gives way from its end.

    Raises:
        ReaderError: the model failed.
    """
    held = moment.evidence if evidence is None else evidence
    known = {e.request: e.generations[0] for step in moment.steps for e in step.exchanges}
    for kept in range(len(held), -1, -1):
        asked = request(moment, held[:kept])
        if asked in known:
            return known[asked]
        try:
            [[generation]] = reader.generate([asked])
            return generation
        except ContextOverflow:
            if not kept:
                raise
    raise AssertionError("unreachable")


def before_last(moment: Moment) -> tuple[Passage, ...] | None:
    """The evidence before the last retrieval; None when there was none yet."""
    searched = [i for i, step in enumerate(moment.steps) if step.query is not None]
    if not searched:
        return None
    return moment.steps[searched[-1] - 1].evidence if searched[-1] else ()


def last_search(moment: Moment) -> Step | None:
    """The last step that sent a query."""
    return next((step for step in reversed(moment.steps) if step.query is not None), None)


def same(one: Generation, other: Generation) -> bool:
    """Whether two drafts are equal once normalised; one that says nothing equals none."""
    return bool(normalise(one.text)) and normalise(one.text) == normalise(other.text)


def logprobs(found: Generation, reader: Reader) -> tuple[float, ...]:
    """Of the tokens of an answer, in nats; of an empty one that of its end.

    Raises:
        ReaderError: the reader tells none.
    """
    told = found.logprobs or ((found.end_logprob,) if found.end_logprob is not None else ())
    if not told:
        raise ReaderError(f"{reader.name} tells no token probabilities, which this policy goes by")
    return told


def margin(found: Generation, reader: Reader) -> float:
    """Mean margin between the first and the second token, in [0, 1].

    A reader tells the probability p of the token it takes only; the second has 1 - p at most, so
    the margin is 2p - 1 at least, which is what counts here.
    """
    told = logprobs(found, reader)
    return sum(max(0.0, 2 * exp(each) - 1) for each in told) / len(told)


def entropies(found: Generation, reader: Reader) -> tuple[float, ...]:
    """Of the tokens of an answer, in nats; 0 for an answer without tokens.

    Raises:
        ReaderError: the reader tells none.
    """
    if found.tokens and not found.entropies:
        raise ReaderError(f"{reader.name} tells no entropies, which this policy goes by")
    return found.entropies or (0.0,)
