"""FLARE's draft of a sentence: its end, its unsure tokens, and the query from them.

Token probabilities come from the reader's raw distribution.
"""

from collections.abc import Sequence
from functools import partial
from math import exp
from typing import Literal

from hopscope.runtime.errors import ReaderError
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.prompting import fitting
from hopscope.runtime.texts.continuation import sentence_end
from hopscope.runtime.types import Generation, Hit
from hopscope.workflows.flare.writing import FlareState, Limit

Query = Literal["masked", "question"]
"""The query from an unsure draft: the draft without unsure words, or questions about them."""
Variant = Literal["mixed", "code", "paper"]
"""The source of the conditions where the paper and its code differ."""

SHORTEST = 5
"""The least characters of a sentence; shorter ones ("1.") are joined with the next."""
LONGEST_QUERY = 64
"""The most tokens of a query."""
NEAR = 5
"""Unsure tokens less than this apart belong to one span."""


def write(state: FlareState, deps: Deps, limit: Limit, *, blind: bool = False) -> Generation:
    """The sentence that continues the answer; `blind` drafts without documents.

    Raises:
        ReaderError: the reader gave no probabilities.
    """
    question, written = state["question"].text, state.get("text", "")
    generation = fitting.generate(
        deps,
        () if blind else state["evidence"],
        partial(deps.prompts.render, "flare/write", question=question, thoughts=(written,)),
        max_tokens=min(limit.sentence, limit.answer - state.get("length", 0)),
        stop=("\n\n",),
    )
    return first(generation, reader=deps.reader.name)


def first(draft: Generation, *, reader: str) -> Generation:
    """The draft up to the end of its first sentence, with the tokens that spell it.

    `finish_reason` is "length" if more text follows: there is more to write.

    Raises:
        ReaderError: the reader gave no probabilities.
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
    """Whether no token is less probable than `theta`; `at_threshold`: nor equally probable.

    At `theta` 1 no draft is confident, even with certain tokens: the paper's "always retrieve".
    """
    if theta >= 1:
        return not draft.tokens
    least = min((exp(logprob) for logprob in draft.logprobs), default=1.0)
    return least > theta if at_threshold else least >= theta


def mask(draft: Generation, beta: float) -> str:
    """The implicit query: the last `LONGEST_QUERY` tokens of the draft, with a space for each
    improbable token."""
    kept = [
        token if exp(logprob) > beta else " "
        for token, logprob in zip(draft.tokens, draft.logprobs, strict=True)
    ]
    return "".join(kept[-LONGEST_QUERY:]).strip()


def whole(draft: Generation) -> str:
    """The draft as a query: its last `LONGEST_QUERY` tokens."""
    return "".join(draft.tokens[-LONGEST_QUERY:]).strip()


def spans(draft: Generation, beta: float) -> list[str]:
    """The spans of improbable tokens; spans close to each other are joined."""
    groups: list[list[int]] = []
    for position, logprob in enumerate(draft.logprobs):
        if exp(logprob) > beta:
            continue
        if groups and position - groups[-1][-1] < NEAR:
            groups[-1].append(position)
        else:
            groups.append([position])
    texts = ("".join(draft.tokens[group[0] : group[-1] + 1]).strip() for group in groups)
    return list(dict.fromkeys(text for text in texts if text))


def interleave(rankings: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    """The best of each ranking, then the second of each, without repetitions; at most `k`."""
    deepest = max(map(len, rankings), default=0)
    turns = (ranking[i] for i in range(deepest) for ranking in rankings if i < len(ranking))
    distinct: dict[str, Hit] = {}
    for hit in turns:
        distinct.setdefault(hit.passage.key, hit)
    return list(distinct.values())[:k]
