"""FLARE's explicit queries: a question about each span of a draft that the model is unsure of."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from hopscope.runtime.state import Deps
from hopscope.runtime.types import Generation, GenerationRequest
from hopscope.workflows._draft import LONGEST_QUERY, whole
from hopscope.workflows._prompts import ask
from hopscope.workflows._text import continued
from hopscope.workflows._writing import FlareState

EXPAND_TASK = (
    'Copy the shortest complete phrase of the answer that begins with "{span}". '
    "Give only the phrase."
)
ASK_TASK = 'Ask one question to which "{span}" is the answer. Give only the question.'
WORD = re.compile(r"\w")


class Formulated(NamedTuple):
    """What to search for instead of an unsure draft."""

    queries: tuple[str, ...]
    """Without repetitions."""
    ok: bool | None
    """Whether all replies had the form asked for; None when nothing was asked."""


def phrase(reply: str, span: str, sentence: str) -> str | None:
    """The constituent that a reply proposes: it must begin with the span and stand in the
    sentence. None where it does not, and the span is dropped."""
    proposed = reply.strip()
    return proposed if proposed.startswith(span) and proposed in sentence else None


def question(reply: str) -> str:
    """The first line of a reply if it is a question, else nothing."""
    line = reply.strip().partition("\n")[0].strip()
    return line if line.endswith("?") and WORD.search(line) else ""


def formulate(state: FlareState, deps: Deps, spans: Sequence[str], *, expand: bool) -> Formulated:
    """What the reader asks about each span of the draft; the draft itself where there is nothing
    to ask about, as in the authors' code.

    `expand` first asks for the phrase that each span begins, one more request for each. Spans
    without a letter or a digit are not asked about.
    """
    draft = state["draft"] or Generation(text="")
    written = continued(state.get("text", ""), draft.text).strip()

    def say(task: str, spans: Sequence[str]) -> list[str]:
        topic = f"{state['question'].text}\nAnswer: {written}"
        requests = [
            GenerationRequest(
                prompt=ask(topic, (), task.format(span=span)),
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
        replies = say(EXPAND_TASK, spans)
        phrases = [phrase(r, span, draft.text) for r, span in zip(replies, spans, strict=True)]
        read += [found is not None for found in phrases]
        spans = [found for found in phrases if found is not None]
    # After the expansion, as a phrase may begin with a quotation mark.
    terms = [span for span in dict.fromkeys(spans) if any(map(str.isalnum, span))]
    asked = [question(reply) for reply in say(ASK_TASK, terms)]
    read += map(bool, asked)
    queries = asked if terms else [whole(draft)]
    return Formulated(tuple(dict.fromkeys(filter(None, queries))), all(read) if read else None)
