"""Utility judgments in a single reply: what Vanilla, UJ-ExpA, UJ-ImpA and k-sampling share."""

from langgraph.graph import START

from hopscope.runtime.rerankers._item_prompts import Form
from hopscope.runtime.rerankers._utility import Judgment, judge
from hopscope.runtime.state import Deps, declined
from hopscope.runtime.step import step
from hopscope.workflows import _candidates
from hopscope.workflows._candidates import Graph, State, Update, choose


@step("judge")
def judge_utility(state: State, deps: Deps, *, how: Judgment, first: Form | None) -> Update:
    """U, chosen with the answer of form `first`, if any, that is written before in the reply."""
    useful, ok = judge(deps, state["question"].text, state["candidates"], how, first=first)
    return choose(state, useful, ok)


def single_shot(
    *, judgment: Judgment, first: Form | None, candidates: int, max_tokens: int
) -> Graph:
    graph = Graph(State, context_schema=Deps)
    graph.add_node("retrieve", _candidates.retrieve(candidates=candidates))
    graph.add_node("judge_utility", judge_utility(how=judgment, first=first))
    graph.add_node("answer", _candidates.answer(max_tokens=max_tokens))
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", declined, {False: "judge_utility", True: "answer"})
    graph.add_edge("judge_utility", "answer")
    return graph
