"""What both FLAREs share: an answer written piece by piece, and when it is complete."""

from typing import NamedTuple, TypedDict

from langgraph.graph import StateGraph

from hopscope.runtime.state import Deps, State, Update
from hopscope.runtime.types import Generation
from hopscope.workflows._text import continued, extract_answer


class Limit(NamedTuple):
    """Tokens at most."""

    sentence: int
    answer: int


class Writing(TypedDict, total=False):
    """What is kept about the answer."""

    text: str
    """What is written so far."""
    length: int
    """Tokens spent on it, those that were cut out afterwards included."""
    draft: Generation | None
    """The next sentence, until one is accepted."""
    sure: bool
    """Whether the model was, of each token of the draft."""
    queries: tuple[str, ...]
    """What is to be searched before the next piece."""


class FlareState(State, Writing, total=False):
    """The shared state and the writing."""


class FlareUpdate(Update, Writing, total=False):
    """A change of it."""


FlareGraph = StateGraph[FlareState, Deps, FlareState, FlareState]


def append(state: FlareState, piece: Generation, *, max_tokens: int) -> FlareUpdate:
    """Write one more piece. It is the last one if the model ended, if it said nothing at all, or
    if `max_tokens` are spent; then the answer is read from the text, after its marker or whole."""
    text = continued(state.get("text", ""), piece.text)
    spent = len(piece.tokens) or piece.usage.output_tokens or len(piece.text.split())
    length = state.get("length", 0) + spent
    update: FlareUpdate = {"text": text, "length": length, "draft": None, "output": piece.text}
    if piece.finish_reason != "length" or not spent:
        update["stop_reason"] = "eos" if text.strip() else "empty_generation"
    elif length >= max_tokens:
        update["stop_reason"] = "max_tokens"
    else:
        return update
    answer = extract_answer(" ".join(text.split()))
    update["answer"] = text.strip() if answer is None else answer
    update["parse_ok"] = answer is not None
    return update
