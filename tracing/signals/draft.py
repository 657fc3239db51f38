"""The draft: the short answer that a reader would give now, which label-free policies use.

Invariant: the request depends on question, evidence, seed and prompts alone. If a workflow made the
same request (`naive`, Iter-RetGen), the reply is in its record and costs nothing.
"""

from collections.abc import Sequence
from math import exp

from hopscope.runtime.errors import ContextOverflowError, ReaderError
from hopscope.runtime.ports import Moment, Reader
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.texts.answers import normalise
from hopscope.runtime.types import Generation, GenerationRequest, Passage, Step

MAX_TOKENS = 32
PROMPT = "policy/draft"


def request(moment: Moment, evidence: Sequence[Passage]) -> GenerationRequest:
    """Greedy; by default in the prompt of naive RAG."""
    prompts = moment.prompts or DEFAULT_PROMPTS
    return GenerationRequest(
        prompt=prompts.render(PROMPT, evidence, question=moment.question.text),
        max_tokens=MAX_TOKENS,
        stop=("\n",),
        seed=moment.seed,
    )


def draft(moment: Moment, reader: Reader, evidence: Sequence[Passage] | None = None) -> Generation:
    """The answer from the given evidence (by default the present one), if possible from the run's
    record. Evidence that does not fit the reader is shortened from its end.

    Raises:
        ReaderError: the model failed.
    """
    held = moment.evidence if evidence is None else evidence
    known = {e.request: e.generations[0] for step in moment.steps for e in step.exchanges}
    for kept in range(len(held), -1, -1):
        wanted = request(moment, held[:kept])
        if wanted in known:
            return known[wanted]
        try:
            [[generation]] = reader.generate([wanted])
            return generation
        except ContextOverflowError:
            if not kept:
                raise
    raise AssertionError("unreachable")


def before_last(moment: Moment) -> tuple[Passage, ...] | None:
    """The evidence before the last retrieval; None before the first retrieval."""
    searched = [i for i, step in enumerate(moment.steps) if step.retrieved]
    if not searched:
        return None
    return moment.steps[searched[-1] - 1].evidence if searched[-1] else ()


def last_search(moment: Moment) -> Step | None:
    """The last step that sent a query."""
    return next((step for step in reversed(moment.steps) if step.retrieved), None)


def same(one: Generation, other: Generation) -> bool:
    """Whether two drafts are equal after normalisation; an empty draft equals none."""
    return bool(normalise(one.text)) and normalise(one.text) == normalise(other.text)


def logprobs(draft: Generation, reader: Reader) -> tuple[float, ...]:
    """Log-probabilities of the draft's tokens, in nats; of an empty draft that of its end.

    Raises:
        ReaderError: the reader gives none.
    """
    values = draft.logprobs or ((draft.end_logprob,) if draft.end_logprob is not None else ())
    if not values:
        raise ReaderError(
            f"{reader.name} gives no token probabilities, which this policy needs: use another "
            "reader or policy"
        )
    return values


def margin(draft: Generation, reader: Reader) -> float:
    """A lower bound of the mean margin between the first and the second token, in [0, 1].

    A reader gives only the probability p of the token it takes; the second has at most 1 - p, so
    the margin is at least 2p - 1.
    """
    values = logprobs(draft, reader)
    return sum(max(0.0, 2 * exp(each) - 1) for each in values) / len(values)


def entropies(draft: Generation, reader: Reader) -> tuple[float, ...]:
    """Entropies of the draft's tokens, in nats; 0 for a draft without tokens.

    Raises:
        ReaderError: the reader gives none.
    """
    if draft.tokens and not draft.entropies:
        raise ReaderError(
            f"{reader.name} gives no entropies, which this policy needs: use another reader or "
            "policy"
        )
    return draft.entropies or (0.0,)
