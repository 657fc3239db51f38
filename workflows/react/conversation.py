"""The conversation of a ReAct run: what was said, what was called, and what was found for it."""

import json
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from hopscope.runtime.execution.state import State
from hopscope.runtime.prompting import tool_calls
from hopscope.runtime.prompting.prompt_set import PromptSet
from hopscope.runtime.prompting.tool_calls import Call
from hopscope.runtime.types import Hit, Message, Passage, Prompt

NAME, QUERY = "search", "query"
"""The tool of the prompt `react/act`, and its argument."""


class Searched(NamedTuple):
    """A query, and what became of it."""

    query: str
    ranking: Sequence[Hit] | None
    """None where the search was declined."""


def query(call: Call) -> str | None:
    """The query of a call; None if it calls something else or says nothing."""
    asked = call.arguments.get(QUERY)
    asked = asked.strip() if isinstance(asked, str) else ""
    return asked if call.name == NAME and asked else None


def queries(turn: str, at_once: int) -> list[str]:
    """The queries of a turn, `at_once` at most."""
    asked = [found for call in tool_calls.read(turn).calls if (found := query(call))]
    return asked[:at_once]


def waiting(state: State, at_once: int) -> list[str]:
    """The queries of the last turn that no step has carried out or declined yet."""
    done = 0
    for step in reversed(state["steps"]):
        if step.kind != "retrieve":
            break
        done += 1
    return queries(state["thoughts"][-1], at_once)[done:]


def rankings(state: State) -> list[Sequence[Hit] | None]:
    """What each search found, in order; None where it was declined."""
    return [
        None if step.declined else step.ranked
        for step in state.get("steps", [])
        if step.kind == "retrieve"
    ]


class Result(NamedTuple):
    """The result of a call, as the prompt tells it."""

    state: Literal["found", "declined", "wrong"]
    passages: tuple[Passage, ...] = ()


class Turn(NamedTuple):
    """A turn of the model."""

    calls: str
    """As the message of a role `calls`."""
    results: tuple[Result, ...]


def prompt(
    prompts: PromptSet,
    question: str,
    turns: Sequence[str],
    found: Sequence[Sequence[Hit] | None],
    kept: Collection[str],
    *,
    at_once: int,
    closing: bool,
) -> Prompt:
    """The conversation so far.

    Args:
        turns: the model's replies, all with calls.
        found: what the searches found, in the order of the queries; those of the last turn may be
            missing from some query on.
        kept: the keys of the passages to show.
        closing: tell the model to answer now.
    """
    shown: list[Passage] = []
    left = iter(found)
    told: list[Turn] = []
    for turn in turns:
        said = tool_calls.read(turn)
        results: list[Result] = []
        room = at_once
        for call in said.calls:
            if query(call) is None:
                results.append(Result("wrong"))
            elif room == 0 or (ranking := next(left, None)) is None:
                results.append(Result("declined"))
            else:
                room -= 1
                passages = tuple(hit.passage for hit in ranking if hit.passage.key in kept)
                shown += passages
                results.append(Result("found", passages))
        told.append(Turn(tool_calls.called(said).content, tuple(results)))
    made = prompts.render("react/act", question=question, turns=told, closing=closing)
    keys = tuple(dict.fromkeys(passage.key for passage in shown))
    return made.model_copy(update={"messages": tuple(map(_safe, made.messages)), "shown": keys})


def _safe(message: Message) -> Message:
    """Without marks of calls in what passages say, and the tools as one line of JSON."""
    if message.role == "tool":
        return Message(role="tool", content=tool_calls.defuse(message.content))
    if message.role == "tools":
        return tool_calls.offered(json.loads(message.content))
    return message
