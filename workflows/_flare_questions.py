"""FLARE's explicit queries: a question about each span of a draft that the model is unsure of."""

import re
from collections.abc import Sequence

from hopscope.runtime.state import Deps
from hopscope.runtime.types import GenerationRequest
from hopscope.workflows._draft import LONGEST_QUERY
from hopscope.workflows._prompts import ask
from hopscope.workflows._text import continued
from hopscope.workflows._writing import FlareState

EXPAND_TASK = (
    'Copy the shortest complete phrase of the answer that begins with "{span}". '
    "Give only the phrase."
)
ASK_TASK = 'Ask one question to which "{span}" is the answer. Give only the question.'
QUESTION = re.compile(r".*\w.*\?")


def phrase(reply: str, span: str, sentence: str) -> str:
    """The constituent that a reply proposes, else the span: it must begin with the span and
    stand in the sentence."""
    proposed = reply.strip()
    return proposed if proposed.startswith(span) and proposed in sentence else span


def question(reply: str) -> str:
    """The first line of a reply if it is a question, else nothing."""
    line = reply.strip().partition("\n")[0].strip()
    return line if QUESTION.fullmatch(line) else ""


def questions(state: FlareState, deps: Deps, spans: Sequence[str], *, expand: bool) -> list[str]:
    """What the reader asks about each span of the draft; empty where its reply is no question.

    `expand` first asks for the phrase that each span begins, one more request for each.
    """
    draft = state["draft"]
    sentence = draft.text if draft else ""
    written = continued(state.get("text", ""), sentence).strip()

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

    if expand:
        replies = say(EXPAND_TASK, spans)
        spans = [phrase(r, span, sentence) for r, span in zip(replies, spans, strict=True)]
    return [question(reply) for reply in say(ASK_TASK, spans)]
