"""Thoughts in the replies of servers: where they tell them, how many tokens they took, and how an
answer is limited where the server would count its thought, too.

Servers that part a reply tell the thought as `reasoning_content` (vLLM, llama.cpp, DeepSeek),
`reasoning` (newer vLLM, OpenRouter, Ollama) or a part of the content (Mistral); others send both in
one text, between marks. OpenAI tells of its models' thoughts only how many tokens they took.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from hopscope.runtime.readers._choices import Choice
from hopscope.runtime.readers._thinking import part
from hopscope.runtime.types import GenerationRequest, Thought, ThoughtEnd, Usage


def parted(choice: Choice) -> Choice:
    """The choice with its thought apart from its text, wherever the server put it."""
    if choice.thought is not None:
        return choice._replace(unfinished=not choice.text.strip())
    thought, answer, end = part(choice.text)
    if thought is None:
        return choice
    return choice._replace(text=answer, thought=thought, unfinished=end == "open")


def counts(told: Any, choices: Sequence[Choice], usages: Sequence[Usage]) -> list[int]:
    """Tokens of each choice's thought: as the server tells, shared out by length; or else the part
    of all tokens that the thought has of the text."""
    lengths = [len(choice.thought or "") for choice in choices]
    output = sum(usage.output_tokens for usage in usages)
    whole = _told(told)
    if whole is not None:
        whole, total = min(whole, output), sum(lengths)
        if not total:
            return [whole, *[0] * (len(lengths) - 1)]
        # Rounded where one ends and the next begins, none is below 0, and together they are all.
        ends = [round(whole * end / total) for end in accumulate(lengths, initial=0)]
        return [end - start for start, end in pairwise(ends)]
    text = sum(len(choice.text) for choice in choices) + sum(lengths)
    return [round(output * length / text) if text else 0 for length in lengths]


def thought(choice: Choice, tokens: int) -> Thought | None:
    """The record of a choice's thought; one without an answer never ended."""
    if choice.thought is None and not tokens:
        return None
    # Of thoughts that are kept secret no mark tells the end.
    cut = choice.thought is None and choice.finish == "length" and not choice.text.strip()
    end: ThoughtEnd = "open" if choice.unfinished or cut else "closed"
    return Thought(text=(choice.thought or "").strip(), tokens=tokens, end=end)


def answer_only(choice: Choice, pieces: Sequence[str] | None, asked: GenerationRequest) -> Choice:
    """The choice without the tokens of its thought, ended where `asked` wants an answer to end."""
    text = choice.text.lstrip() if choice.thought is not None else choice.text
    tokens = _behind(choice, pieces, text)
    found = [(text.find(stop), stop) for stop in asked.stop if stop and stop in text]
    if found:
        at, stop = min(found)
        return choice._replace(
            text=text[:at], finish="stop", stopped_by=stop, names_stop=True, tokens=tokens
        )
    if len(tokens) > asked.max_tokens and pieces is not None:
        kept = pieces[len(choice.tokens) - len(tokens) :][: asked.max_tokens]
        text, tokens = text[: len("".join(kept))], tokens[: asked.max_tokens]
        return choice._replace(text=text, finish="length", tokens=tokens)
    return choice._replace(text=text, tokens=tokens)


def _behind(choice: Choice, pieces: Sequence[str] | None, text: str) -> tuple[Any, ...]:
    """The tokens that spell the answer and its end; all, where a server lists no others."""
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


def _told(usage: Any) -> int | None:
    details = usage.get("completion_tokens_details") if isinstance(usage, Mapping) else None
    value = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
    return value if type(value) is int and value >= 0 else None
