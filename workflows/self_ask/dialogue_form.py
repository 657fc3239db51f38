"""The form of a Self-Ask dialogue: follow-up questions, intermediate answers, the final answer."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from langgraph.graph import StateGraph

from hopscope.runtime.execution.state import Deps, State, Update
from hopscope.runtime.ports import Probabilities, Statement
from hopscope.runtime.types import Hit, Passage


class SelfAskState(State, total=False):
    """The shared state; its thoughts are the turns of the dialogue."""

    entailed: bool
    """Whether the documents support every answer in it."""


class SelfAskUpdate(Update, total=False):
    """A change of it."""

    entailed: bool


SelfAskGraph = StateGraph[SelfAskState, Deps, SelfAskState, SelfAskState]

ENTAILED = 0.5
"""Support that an answer must exceed to be trusted."""
OPENING = "Are follow up questions needed here:"
INTERMEDIATE = "Intermediate answer:"
FINAL = "So the final answer is:"

_INTERMEDIATE = re.compile(r"intermediate answer:", re.IGNORECASE)
_FOLLOW_UP = re.compile(r"follow[ -]?up(?: question)?:[ \t]*+(?=\S)", re.IGNORECASE)
_FINAL = re.compile(r"so the final answer is:?[ \t]*([^\s:][^\n]*)", re.IGNORECASE)


class Turn(NamedTuple):
    """The text that one call adds to the dialogue."""

    text: str
    """Up to the end of its follow-up question, if it has one."""
    said: str
    """The text before that question or the final answer: the intermediate answer."""
    follow_up: str | None = None
    answer: str | None = None


def read(reply: str) -> Turn:
    """The turn at the beginning of a reply, which may go on and answer its own follow-up.

    The first follow-up or final answer ends it. A repetition of the marker that the prompt already
    wrote is dropped.
    """
    text = reply.strip()
    if opened := _INTERMEDIATE.match(text):
        text = text[opened.end() :].strip()
    asked, final = _FOLLOW_UP.search(text), _FINAL.search(text)
    if final and not (asked and asked.start() < final.start()):
        answer = final.group(1).strip().removesuffix(".").strip()
        return Turn(text[: final.end()].strip(), text[: final.start()].strip(), answer=answer)
    if asked:
        end = _question_end(text, asked.end())
        follow_up = text[asked.end() : end].strip()
        return Turn(text[:end].strip(), text[: asked.start()].strip(), follow_up=follow_up)
    return Turn(text, text)


def _question_end(text: str, start: int) -> int:
    """The end of the line, or the start of an intermediate answer on the same line."""
    line = text.find("\n", start)
    end = len(text) if line < 0 else line
    answered = _INTERMEDIATE.search(text, start + 1, end)
    return answered.start() if answered else end


def dialogue(turns: Sequence[str]) -> str:
    """The dialogue so far, to be continued: each turn answers the follow-up of the one before."""
    return "".join([OPENING, *(f" {turn}\n{INTERMEDIATE}" for turn in turns)])


def closing(turns: Sequence[str]) -> str:
    """The dialogue so far, with the marker of the final answer, whatever is still open."""
    return "".join([OPENING, *(f" {turn}" for turn in turns), f"\n{FINAL}"])


def end(reply: str) -> Turn:
    """The turn of a reply to a request for the final answer."""
    answer = reply.strip().partition("\n")[0].strip().removesuffix(".").strip()
    return Turn(f"{FINAL} {answer}", "", answer=answer)


def statements(
    question: str,
    answer: str,
    evidence: Iterable[Passage],
    turns: Sequence[str],
    rankings: Sequence[Sequence[Hit]],
) -> list[Statement]:
    """What must hold for the answer to be trusted: that the evidence gives it, and that what was
    found for each follow-up gives the intermediate answer. `rankings[i]` stood before turn i."""
    said = [Statement(question, _texts(evidence), answer)]
    for (before, after), ranking in zip(pairwise(map(read, turns)), rankings[1:], strict=False):
        premise = _texts(hit.passage for hit in ranking)
        said.append(Statement(before.follow_up or question, premise, after.said))
    return said


def _texts(passages: Iterable[Passage]) -> str:
    return " ".join(f"{passage.title}: {passage.text}" for passage in passages)


def support(relation: Probabilities) -> float:
    """The probability of entailment against contradiction; where both are 0 there is none."""
    decided = relation.entailment + relation.contradiction
    return relation.entailment / decided if decided else 0.0
