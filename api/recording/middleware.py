"""`hopscope.middleware`: a policy and limits for the searches of LangChain's agents."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from hopscope.api.given import PolicyPart, ReaderPart
from hopscope.api.recording.guard import NATIVE, Guard
from hopscope.runtime.budget.ledger import Limits
from hopscope.runtime.errors import MissingExtraError, UsageError
from hopscope.runtime.types import Decision

try:
    from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
except ImportError:
    raise MissingExtraError("middleware for LangChain's agents", "langchain") from None

DECLINED = "This search was not carried out: {reason}. Answer now, from what you have found."
"""What the model is told of a search that was declined."""


class Middleware(AgentMiddleware[Any, Any, Any]):
    """See `middleware`."""

    def __init__(self, guard: Guard, tools: frozenset[str], message: str) -> None:
        super().__init__()
        self._guard = guard
        self._searches = tools
        self._message = message

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]
    ) -> Any:
        """The result of the tool, or the message that the search was declined."""
        asked = self._asked(request)
        if not asked:
            return handler(request)
        name, id = request.tool_call["name"], str(request.tool_call["id"])
        decision = self._guard.decide(id, asked)
        with self._guard.within(name, decision):
            return handler(request) if decision.retrieve else self._declined(request, decision)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """As `wrap_tool_call`; a policy asks its reader in a thread."""
        asked = self._asked(request)
        if not asked:
            return await handler(request)
        name, id = request.tool_call["name"], str(request.tool_call["id"])
        decision = await asyncio.to_thread(self._guard.decide, id, asked)
        with self._guard.within(name, decision):
            if decision.retrieve:
                return await handler(request)
            return self._declined(request, decision)

    def _asked(self, request: ToolCallRequest) -> list[str]:
        """The ids of the searches that the model asked for at once; empty for other tools."""
        if not self._searching(request.tool_call["name"]):
            return []
        id, state = str(request.tool_call["id"]), request.state
        messages = state.get("messages") if isinstance(state, dict) else None
        spoken = (each for each in reversed(messages or []) if isinstance(each, AIMessage))
        made = getattr(next(spoken, None), "tool_calls", [])
        ids = [str(each["id"]) for each in made if self._searching(each["name"])]
        return ids if id in ids else [id]

    def _searching(self, name: str) -> bool:
        return not self._searches or name in self._searches

    def _declined(self, request: ToolCallRequest, decision: Decision) -> ToolMessage:
        call = request.tool_call
        content = self._message.format(reason=decision.reason)
        return ToolMessage(content=content, tool_call_id=call["id"], name=call["name"])


def middleware(
    policy: PolicyPart = NATIVE,
    limits: Limits | None = None,
    *,
    reader: "ReaderPart | None" = None,
    prompts: str | Path | None = None,
    tools: Iterable[str] = (),
    message: str = DECLINED,
    seed: int = 0,
) -> Middleware:
    """Middleware for LangChain's `create_agent`, which declines searches that are not worth it.

        agent = create_agent(model, [search], middleware=[hopscope.middleware("fixed:3")])
        agent.invoke(asked, config={"callbacks": [hopscope.HopscopeHandler("runs.db")]})

    Decisions are made from what was recorded, so the agent needs a `HopscopeHandler`, or a
    recording around it. They are part of the run: `hopscope budget explain` tells them. Searches
    that the model asks for at once are decided on in its order. Limits hold for searches: the model
    itself is not stopped.

    Args:
        policy: name of a policy (docs/budget.md), or one.
        limits: the maximum retrievals, calls, tokens and seconds of one run.
        reader: whom the policy asks; policies that only count, and limits, need none.
        prompts: a folder of prompts, or the name of a set, that it is asked in, in place of the
            reader's or default ones. A policy that was learned from runs with others is warned of.
        tools: names of the tools that search; by default all do.
        message: what the model is told instead of passages; `{reason}` stands for the reason.
        seed: of the policy's drafts.

    Raises:
        UsageError: there is no such policy, reader or set of prompts, or the message has other
            braces.
        MissingExtraError: LangChain is not installed.
    """
    try:
        message.format(reason="")
    except (LookupError, ValueError, AttributeError):
        raise UsageError(
            f"message: {message!r} has braces other than {{reason}}: write {{{{ and }}}} for others"
        ) from None
    names = frozenset([tools] if isinstance(tools, str) else tools)
    guard = Guard(policy, limits, reader=reader, prompts=prompts, seed=seed)
    return Middleware(guard, names, message)
