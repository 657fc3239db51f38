"""Naive RAG: retrieve once with the question, then answer.

Lewis, Perez, Piktus, Petroni, Karpukhin, Goyal, Küttler, Lewis, Yih, Rocktäschel, Riedel, Kiela:
Retrieval-Augmented Generation for Knowledge-Intensive NLP Tasks, NeurIPS 2020 (arXiv 2005.11401),
without its training.

START ── retrieve ── answer ── END
"""

from functools import partial

from langgraph.graph import START

from hopscope.runtime.components import Count
from hopscope.runtime.execution.state import Deps, Graph, State, Update, merge
from hopscope.runtime.execution.step import step
from hopscope.runtime.prompting.fitting import generate


@step("retrieve")
def retrieve(state: State, deps: Deps, *, k: int) -> Update:
    [hits] = deps.retriever.search([state["question"].text], k=k)
    return {"evidence": merge((), hits)}


@step("generate")
def answer(state: State, deps: Deps, *, max_tokens: int) -> Update:
    prompt = partial(deps.prompts.render, "naive/answer", question=state["question"].text)
    generation = generate(deps, state["evidence"], prompt, max_tokens=max_tokens, stop=("\n",))
    return {"answer": generation.text.strip(), "stop_reason": "answered"}


def build(*, k: Count = 5, max_tokens: Count = 32) -> Graph:
    graph = Graph(State, context_schema=Deps)
    graph.add_node("retrieve", retrieve(k=k))
    graph.add_node("answer", answer(max_tokens=max_tokens))
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "answer")
    return graph
