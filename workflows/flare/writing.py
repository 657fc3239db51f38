"""Shared by both FLAREs: an answer written piece by piece, and the test that it is complete."""

from typing import NamedTuple, TypedDict

from langgraph.graph import StateGraph

from hopscope.runtime.execution.state import Deps, State, Update
from hopscope.runtime.texts.continuation import continued, extract_answer
from hopscope.runtime.types import Generation


class Limit(NamedTuple):
    """The most tokens of a sentence and of the answer."""

    sentence: int
    answer: int


class Writing(TypedDict, total=False):
    """The state of the answer."""

    text: str
    """The text so far."""
    length: int
    """Tokens spent on it, including those cut out afterwards."""
    draft: Generation | None
    """The next sentence, until one is accepted."""
    sure: bool
    """Whether the model was sure of each token of the draft."""
    queries: tuple[str, ...]
    """The queries before the next piece."""


class FlareState(State, Writing, total=False):
    """The shared state and the writing."""


class FlareUpdate(Update, Writing, total=False):
    """A change of it."""


FlareGraph = StateGraph[FlareState, Deps, FlareState, FlareState]


def append(state: FlareState, piece: Generation, *, max_tokens: int) -> FlareUpdate:
    """Write one more piece. It is the last one if the model ended, if the piece is empty, or if
    `max_tokens` are spent; then the answer is extracted: the text after its marker, or all text."""
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
