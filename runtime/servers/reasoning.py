"""Thoughts in the replies of servers: their place, their tokens, and the limit of an answer where
the server would count its thought too.

Servers that split a reply send the thought as `reasoning_content` (vLLM, llama.cpp, DeepSeek),
`reasoning` (newer vLLM, OpenRouter, Ollama) or a part of the content (Mistral); others send both in
one text, between marks. OpenAI sends only the number of tokens of a thought.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from hopscope.runtime.servers.replies import CompletionChoice
from hopscope.runtime.thinking.marks import part
from hopscope.runtime.types import GenerationRequest, Thought, ThoughtEnd, Usage


def parted(choice: CompletionChoice) -> CompletionChoice:
    """The choice with its thought separated from its text, wherever the server put it."""
    if choice.thought is not None:
        return choice._replace(unfinished=not choice.text.strip())
    thought, answer, end = part(choice.text)
    if thought is None:
        return choice
    return choice._replace(text=answer, thought=thought, unfinished=end == "open")


def counts(
    reported: Any, choices: Sequence[CompletionChoice], usages: Sequence[Usage]
) -> list[int]:
    """Tokens of each choice's thought: the server's count, divided by length; without one, the
    thought's share of the text times all tokens."""
    lengths = [len(choice.thought or "") for choice in choices]
    output = sum(usage.output_tokens for usage in usages)
    whole = _reported_tokens(reported)
    if whole is not None:
        whole, total = min(whole, output), sum(lengths)
        if not total:
            return [whole, *[0] * (len(lengths) - 1)]
        # Rounding the boundaries keeps each count at 0 or more, and their sum exact.
        ends = [round(whole * end / total) for end in accumulate(lengths, initial=0)]
        return [end - start for start, end in pairwise(ends)]
    text = sum(len(choice.text) for choice in choices) + sum(lengths)
    return [round(output * length / text) if text else 0 for length in lengths]


def thought(choice: CompletionChoice, tokens: int) -> Thought | None:
    """The record of a choice's thought; a thought without an answer never ended."""
    if choice.thought is None and not tokens:
        return None
    # Thoughts that the server hides have no mark of their end.
    cut = choice.thought is None and choice.finish == "length" and not choice.text.strip()
    end: ThoughtEnd = "open" if choice.unfinished or cut else "closed"
    return Thought(text=(choice.thought or "").strip(), tokens=tokens, end=end)


def answer_only(
    choice: CompletionChoice, pieces: Sequence[str] | None, request: GenerationRequest
) -> CompletionChoice:
    """The choice without the tokens of its thought, cut at the end that `request` sets."""
    text = choice.text.lstrip() if choice.thought is not None else choice.text
    tokens = _behind(choice, pieces, text)
    stops = [(text.find(stop), stop) for stop in request.stop if stop and stop in text]
    if stops:
        at, stop = min(stops)
        return choice._replace(
            text=text[:at], finish="stop", stopped_by=stop, names_stop=True, tokens=tokens
        )
    if len(tokens) > request.max_tokens and pieces is not None:
        answer = pieces[len(choice.tokens) - len(tokens) :][: request.max_tokens]
        text, tokens = text[: len("".join(answer))], tokens[: request.max_tokens]
        return choice._replace(text=text, finish="length", tokens=tokens)
    return choice._replace(text=text, tokens=tokens)


def _behind(choice: CompletionChoice, pieces: Sequence[str] | None, text: str) -> tuple[Any, ...]:
    """The tokens of the answer and its end; all tokens, if the server lists no others."""
    if pieces is None or choice.thought is None:
        return choice.tokens
    at = "".join(pieces).rfind(text) if text else -1
    if at < 0:
        return choice.tokens[-1:] if choice.finish == "stop" and not text else ()
    start = length = 0
    while length < at:
        length += len(pieces[start])
        start += 1
    while start < len(pieces) and not pieces[start]:
        start += 1
    return choice.tokens[start:]


def _reported_tokens(usage: Any) -> int | None:
    details = usage.get("completion_tokens_details") if isinstance(usage, Mapping) else None
    value = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
    return value if type(value) is int and value >= 0 else None
