"""Search agent: a model trained to search thinks, asks and answers by tags.

Jin, Zeng, Yue, Yoon, Arik, Wang, Zamani, Han: Search-R1: Training LLMs to Reason and Leverage
Search Engines with Reinforcement Learning, COLM 2025 (arXiv 2503.09516); Song, Jiang, Min, Chen,
Chen, Zhao, Fang, Wen: R1-Searcher: Incentivizing the Search Capability in LLMs via Reinforcement
Learning, 2025 (arXiv 2503.05592).

    START ── think ──┬── END
               ↑  ↑__│  wrote neither a query nor an answer (Search-R1)
               └─────┴── search

After `max_turns` turns, or where a search is declined, the reply is begun with `<answer>`. The
authors' code lets the model write on there and takes no answer if it asks again.
"""

from collections.abc import Sequence
from typing import Literal

from langgraph.graph import START

from hopscope.runtime.components import Count
from hopscope.runtime.execution.state import Deps, Graph, State, Update, declined, merge
from hopscope.runtime.execution.step import step
from hopscope.runtime.prompting.fitting import generate
from hopscope.runtime.types import Passage, Prompt
from hopscope.workflows.search_agent.tags import FORMS, Form, Format


@step("generate")
def think(state: State, deps: Deps, *, form: Form, max_turns: int, max_tokens: int) -> Update:
    """Reason on, up to the next query or the answer."""
    turns, evidence = state.get("thoughts", ()), state.get("evidence", ())
    rankings = [past.ranked for past in state.get("steps", []) if past.retrieved]
    closing = declined(state) or len(turns) >= max_turns

    def prompt(kept: Sequence[Passage]) -> Prompt:
        keys = {passage.key for passage in kept}
        return form.prompt(
            deps.prompts, state["question"].text, turns, rankings, keys, closing=closing
        )

    generation = generate(deps, evidence, prompt, max_tokens=max_tokens, stop=form.stop)
    text = form.written(generation)
    turn = form.concluded(generation.text) if closing else form.read(text)
    update: Update = {"thoughts": (*turns, turn.text), "output": turn.text}
    update["parse_ok"] = turn.query is not None or turn.answer is not None
    if closing:
        update["stop_reason"] = "policy" if declined(state) else "max_steps"
    elif turn.answer is not None:
        update["stop_reason"] = "answer_marker"
    elif not turn.text.strip():
        update["stop_reason"] = "empty_generation"
    elif turn.query is None and form.retry is None:
        update["stop_reason"] = "parse_failure"
    if "stop_reason" in update:
        update["answer"] = turn.answer or ""
    return update


@step("retrieve")
def search(state: State, deps: Deps, *, form: Form, k: int) -> Update:
    evidence = state.get("evidence", ())
    query = form.read(state["thoughts"][-1]).query
    [hits] = deps.retriever.search([query or state["question"].text], k=k)
    return {"evidence": merge(evidence, hits)}


def next_step(state: State) -> Literal["think", "search", "__end__"]:
    if "stop_reason" in state:
        return "__end__"
    return "think" if state["steps"][-1].parse_ok is False else "search"


def build(
    *,
    format: Format = "search-r1",
    k: Count = 3,
    max_turns: Count = 5,
    max_tokens: Count = 500,
) -> Graph:
    """`format` is what the model was trained to write. `max_turns` bounds its turns before the
    last, `max_tokens` each of them. An empty query searches for the question."""
    form = FORMS[format]
    graph = Graph(State, context_schema=Deps)
    graph.add_node("think", think(form=form, max_turns=max_turns, max_tokens=max_tokens))
    graph.add_node("search", search(form=form, k=k))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", next_step)
    graph.add_edge("search", "think")
    return graph
