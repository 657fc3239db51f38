"""ReAct: the model reasons, calls the search tool, reads what it finds, and goes on.

Yao, Zhao, Yu, Du, Shafran, Narasimhan, Cao: ReAct: Synergizing Reasoning and Acting in Language
Models, ICLR 2023 (arXiv 2210.03629), with tool calls in the model's own form instead of the paper's
few-shot text.

    START ── act ──┬── END  no tool called
              ↑    │
              └── search ──┐
                    ↑______│  one query after the other

A turn may call several searches at once. Each is a step of its own, so that each gets its own
credit. After `max_turns` turns, or where a search is declined, the model must answer.
"""

from collections.abc import Sequence
from typing import Literal

from langgraph.graph import START

from hopscope.runtime.components import Count
from hopscope.runtime.execution.state import Deps, Graph, State, Update, declined, merge
from hopscope.runtime.execution.step import step
from hopscope.runtime.prompting import tool_calls
from hopscope.runtime.prompting.fitting import generate
from hopscope.runtime.texts.continuation import extract_answer
from hopscope.runtime.types import Passage, Prompt
from hopscope.workflows.react import conversation


@step("generate")
def act(state: State, deps: Deps, *, max_turns: int, at_once: int, max_tokens: int) -> Update:
    """Reason and call, or answer."""
    turns = state.get("thoughts", ())
    closing = declined(state) or len(turns) >= max_turns

    def prompt(kept: Sequence[Passage]) -> Prompt:
        return conversation.prompt(
            deps.prompts,
            state["question"].text,
            turns,
            conversation.rankings(state),
            {passage.key for passage in kept},
            at_once=at_once,
            closing=closing,
        )

    text = generate(deps, state.get("evidence", ()), prompt, max_tokens=max_tokens).text
    said = tool_calls.read(text)
    update: Update = {"thoughts": (*turns, text), "output": text, "parse_ok": not said.broken}
    if closing:
        update["stop_reason"] = "policy" if declined(state) else "max_steps"
    elif said.broken:
        update["stop_reason"] = "parse_failure"
    elif not said.calls:
        update["stop_reason"] = "answered" if said.text else "empty_generation"
    if "stop_reason" in update:
        update["answer"] = extract_answer(said.text) or said.text
    return update


@step("retrieve")
def search(state: State, deps: Deps, *, k: int, at_once: int) -> Update:
    """Carry out the next query of the last turn."""
    query = conversation.waiting(state, at_once)[0]
    [hits] = deps.retriever.search([query], k=k)
    return {"evidence": merge(state.get("evidence", ()), hits)}


def build(
    *, k: Count = 5, max_turns: Count = 6, at_once: Count = 4, max_tokens: Count = 500
) -> Graph:
    """`max_turns` bounds the turns before the last, `at_once` the searches of one turn,
    `max_tokens` each turn."""

    def after_act(state: State) -> Literal["act", "search", "__end__"]:
        if "stop_reason" in state:
            return "__end__"
        return "search" if conversation.waiting(state, at_once) else "act"

    def after_search(state: State) -> Literal["act", "search"]:
        more = not declined(state) and conversation.waiting(state, at_once)
        return "search" if more else "act"

    graph = Graph(State, context_schema=Deps)
    graph.add_node("act", act(max_turns=max_turns, at_once=at_once, max_tokens=max_tokens))
    graph.add_node("search", search(k=k, at_once=at_once))
    graph.add_edge(START, "act")
    graph.add_conditional_edges("act", after_act)
    graph.add_conditional_edges("search", after_search)
    return graph
