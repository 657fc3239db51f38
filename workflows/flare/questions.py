"""FLARE's explicit queries: a question about each unsure span of a draft."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

from hopscope.runtime.execution.state import Deps
from hopscope.runtime.texts.continuation import continued
from hopscope.runtime.types import Generation, GenerationRequest
from hopscope.workflows.flare.drafting import LONGEST_QUERY, whole
from hopscope.workflows.flare.writing import FlareState

WORD = re.compile(r"\w")


class FlareQueries(NamedTuple):
    """The queries from an unsure draft."""

    queries: tuple[str, ...]
    """Without repetitions."""
    ok: bool | None
    """Whether all replies had the requested form; None without a request."""


def phrase(reply: str, span: str, sentence: str) -> str | None:
    """The phrase in a reply, if it begins with the span and occurs in the sentence; else None, and
    the span is dropped."""
    proposed = reply.strip()
    return proposed if proposed.startswith(span) and proposed in sentence else None


def question(reply: str) -> str:
    """The first line of a reply if it is a question, else an empty string."""
    line = reply.strip().partition("\n")[0].strip()
    return line if line.endswith("?") and WORD.search(line) else ""


def formulate(state: FlareState, deps: Deps, spans: Sequence[str], *, expand: bool) -> FlareQueries:
    """The reader's question about each span of the draft; without spans the draft itself, as in
    the authors' code.

    `expand` first requests the phrase that each span begins, one more request for each. Spans
    without a letter or a digit get no question.
    """
    draft = state["draft"] or Generation(text="")
    written = continued(state.get("text", ""), draft.text).strip()

    def say(prompt: Literal["flare/expand", "flare/question"], spans: Sequence[str]) -> list[str]:
        asked = partial(
            deps.prompts.render, prompt, question=state["question"].text, written=written
        )
        requests = [
            GenerationRequest(
                prompt=asked(span=span),
                max_tokens=LONGEST_QUERY,
                stop=("\n",),
                seed=deps.seed,
            )
            for span in spans
        ]
        replies = deps.reader.generate(requests) if requests else []
        return [generations[0].text for generations in replies]

    read: list[bool] = []
    if expand:
        replies = say("flare/expand", spans)
        phrases = [phrase(r, span, draft.text) for r, span in zip(replies, spans, strict=True)]
        read += [each is not None for each in phrases]
        spans = [each for each in phrases if each is not None]
    # After the expansion, because a phrase may begin with a quotation mark.
    terms = [span for span in dict.fromkeys(spans) if any(map(str.isalnum, span))]
    questions = [question(reply) for reply in say("flare/question", terms)]
    read += map(bool, questions)
    queries = questions if terms else [whole(draft)]
    return FlareQueries(tuple(dict.fromkeys(filter(None, queries))), all(read) if read else None)
