"""The conversation of a ReAct run: what was said, what was called, and what was found for it."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from hopscope.runtime.execution.state import State
from hopscope.runtime.prompting import tool_calls
from hopscope.runtime.prompting.prompts import render
from hopscope.runtime.prompting.tool_calls import Call
from hopscope.runtime.types import Hit, Message, Passage, Prompt

TASK = (
    "You answer questions. Think about what must be found out, and call the tool search for it; "
    "you may call it several times at once. Go on until the passages found hold the answer. Then "
    "give only the answer."
)
NAME, QUERY = "search", "query"
SEARCH = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": "Finds passages that tell of a query.",
        "parameters": {
            "type": "object",
            "properties": {QUERY: {"type": "string", "description": "What to look for."}},
            "required": [QUERY],
        },
    },
}
NOTHING = "Nothing was found."
NOT_DONE = "This search was not carried out."
WRONG = f"There is no such tool. The only tool is {NAME}, with the text of a {QUERY}."
CLOSE = "There are no more searches. Give only the answer now."


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
        None if step.decision and not step.decision.retrieve else step.ranked
        for step in state.get("steps", [])
        if step.kind == "retrieve"
    ]


def prompt(
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
    messages = [
        Message(role="system", content=TASK),
        tool_calls.offered([SEARCH]),
        Message(role="user", content=question),
    ]
    shown: list[str] = []
    left = iter(found)
    for turn in turns:
        said = tool_calls.read(turn)
        messages.append(tool_calls.called(said))
        room = at_once
        for call in said.calls:
            if query(call) is None:
                told = WRONG
            elif room == 0 or (ranking := next(left, None)) is None:
                told = NOT_DONE
            else:
                room -= 1
                passages = [hit.passage for hit in ranking if hit.passage.key in kept]
                shown += [passage.key for passage in passages]
                told = _told(passages)
            messages.append(Message(role="tool", content=told))
    if closing and turns:
        last = messages.pop()
        messages.append(Message(role=last.role, content=f"{last.content}\n\n{CLOSE}"))
    return Prompt(messages=tuple(messages), shown=tuple(dict.fromkeys(shown)))


def _told(passages: Sequence[Passage]) -> str:
    lines = [tool_calls.defuse(render(i, passage)) for i, passage in enumerate(passages, start=1)]
    return "\n".join(lines) or NOTHING
