"""`hopscope.guarded`: a policy and limits for a node of a LangGraph graph."""

import asyncio
import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from hopscope.api.given import PolicyPart, ReaderPart
from hopscope.api.recording.guard import NATIVE, Guard
from hopscope.runtime.budget.ledger import Limits

F = TypeVar("F", bound=Callable[..., Any])


def guarded(
    node: F,
    policy: PolicyPart = NATIVE,
    limits: Limits | None = None,
    *,
    declined: Any = None,
    reader: "ReaderPart | None" = None,
    prompts: str | Path | None = None,
    seed: int = 0,
) -> F:
    """A node that searches only while that is worth it.

        graph.add_node("retrieve", hopscope.guarded(retrieve, limits=hopscope.Limits(retrievals=2)))

    As `hopscope.middleware`: decisions are made from what was recorded, and are part of the run.

    Args:
        node: a function of the graph's state, also an asynchronous one.
        declined: what the node returns instead, such as `{"enough": True}` or a `Command`; a
            function of the state and the decision makes it. By default nothing is changed.

    Raises:
        UsageError: there is no such policy, reader or set of prompts.
    """
    guard = Guard(policy, limits, reader=reader, prompts=prompts, seed=seed)
    name = str(getattr(node, "__name__", type(node).__name__))

    def instead(state: Any, decision: Any) -> Any:
        return declined(state, decision) if callable(declined) else declined

    @wraps(node)
    def call(state: Any, *args: Any, **options: Any) -> Any:
        decision = guard.decide(uuid4().hex)
        with guard.within(name, decision):
            return node(state, *args, **options) if decision.retrieve else instead(state, decision)

    @wraps(node)
    async def call_async(state: Any, *args: Any, **options: Any) -> Any:
        decision = await asyncio.to_thread(guard.decide, uuid4().hex)
        with guard.within(name, decision):
            if decision.retrieve:
                return await node(state, *args, **options)
            return instead(state, decision)

    watched: Any = call_async if inspect.iscoroutinefunction(node) else call
    return watched  # type: ignore[no-any-return]  # has the node's signature
