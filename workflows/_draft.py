"""FLARE's draft of a sentence: where it ends, which tokens are unsure, the query they give.

Token probabilities are those of the reader's raw distribution.
"""

from collections.abc import Sequence
from math import exp
from typing import Literal

from hopscope.runtime import fitting
from hopscope.runtime.errors import ReaderError
from hopscope.runtime.prompts import chain_of_thought
from hopscope.runtime.state import Deps
from hopscope.runtime.types import Generation, GenerationRequest, Hit, Passage
from hopscope.workflows._text import sentence_end
from hopscope.workflows._writing import FlareState, Limit

Query = Literal["masked", "question"]
"""How an unsure draft becomes a query: without its unsure words, or as questions about them."""
Variant = Literal["mixed", "code", "paper"]
"""Whose conditions hold where the paper and its code differ."""

SHORTEST = 5
"""Characters of a sentence; shorter ones ("1.") go together with the next."""
LONGEST_QUERY = 64
"""Tokens of a query."""
NEAR = 5
"""Unsure tokens less than this apart belong to one span."""


def write(state: FlareState, deps: Deps, limit: Limit, *, blind: bool = False) -> Generation:
    """The sentence that continues the answer; `blind` is without documents.

    Raises:
        ReaderError: the reader told no probabilities.
    """

    def request(evidence: Sequence[Passage]) -> GenerationRequest:
        return GenerationRequest(
            prompt=chain_of_thought(state["question"].text, evidence, (state.get("text", ""),)),
            max_tokens=min(limit.sentence, limit.answer - state.get("length", 0)),
            stop=("\n\n",),
            seed=deps.seed,
        )

    generation = fitting.generate(deps, () if blind else state["evidence"], request)
    return first(generation, reader=deps.reader.name)


def first(draft: Generation, *, reader: str) -> Generation:
    """The draft up to the end of its first sentence, with the tokens that spell it.

    `finish_reason` is "length" where something follows: there is more to write.

    Raises:
        ReaderError: the reader told no probabilities.
    """
    if len(draft.logprobs) != len(draft.tokens) or (draft.text and not draft.tokens):
        raise ReaderError(
            f"FLARE needs the probability of each token, which {reader} does not give: "
            "choose another reader, or the workflow flare_instruct"
        )
    end = sentence_end(draft.text, least=SHORTEST)
    if not draft.text[end:].strip():
        return draft
    count = position = 0
    while position < end and count < len(draft.tokens):
        position += len(draft.tokens[count])
        count += 1
    return draft.model_copy(
        update={
            "text": draft.text[:end],
            "tokens": draft.tokens[:count],
            "token_ids": draft.token_ids[:count],
            "logprobs": draft.logprobs[:count],
            "entropies": draft.entropies[:count],
            "finish_reason": "length",
        }
    )


def confident(draft: Generation, theta: float, *, at_threshold: bool = False) -> bool:
    """Whether no token is less probable than `theta`; `at_threshold`: nor exactly as probable.

    At `theta` 1 no draft is, even if all its tokens are certain: the paper's "always retrieve".
    """
    if theta >= 1:
        return not draft.tokens
    least = min((exp(logprob) for logprob in draft.logprobs), default=1.0)
    return least > theta if at_threshold else least >= theta


def mask(draft: Generation, beta: float) -> str:
    """The implicit query: the draft with a space for each improbable token.

    Of a draft of more than `LONGEST_QUERY` tokens the last ones.
    """
    kept = [
        token if exp(logprob) > beta else " "
        for token, logprob in zip(draft.tokens, draft.logprobs, strict=True)
    ]
    return "".join(kept[-LONGEST_QUERY:]).strip()


def whole(draft: Generation) -> str:
    """The draft as a query; of more than `LONGEST_QUERY` tokens the last ones."""
    return "".join(draft.tokens[-LONGEST_QUERY:]).strip()


def spans(draft: Generation, beta: float) -> list[str]:
    """The stretches of improbable tokens, those near to each other as one."""
    found: list[list[int]] = []
    for position, logprob in enumerate(draft.logprobs):
        if exp(logprob) > beta:
            continue
        if found and position - found[-1][-1] < NEAR:
            found[-1].append(position)
        else:
            found.append([position])
    texts = ("".join(draft.tokens[group[0] : group[-1] + 1]).strip() for group in found)
    return list(dict.fromkeys(text for text in texts if text))


def interleave(rankings: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    """The best of each ranking, then the second of each, without repetitions; `k` at most."""
    deepest = max(map(len, rankings), default=0)
    turns = (ranking[i] for i in range(deepest) for ranking in rankings if i < len(ranking))
    distinct: dict[str, Hit] = {}
    for hit in turns:
        distinct.setdefault(hit.passage.key, hit)
    return list(distinct.values())[:k]
