"""Utility judgments in a single reply: shared by Vanilla, UJ-ExpA, UJ-ImpA and k-sampling."""

from langgraph.graph import START

from hopscope.runtime.execution.state import Deps, declined
from hopscope.runtime.execution.step import step
from hopscope.runtime.judgments.item_prompts import Form
from hopscope.runtime.judgments.utility_judgment import Judgment, judge
from hopscope.workflows.selection import choosing
from hopscope.workflows.selection.choosing import Graph, State, Update, choose


@step("judge")
def judge_utility(state: State, deps: Deps, *, how: Judgment, first: Form | None) -> Update:
    """U; the reply first gives an answer of form `first`, if any, and then chooses."""
    useful, ok = judge(deps, state["question"].text, state["candidates"], how, first=first)
    return choose(state, useful, ok)


def single_shot(
    *, judgment: Judgment, first: Form | None, candidates: int, max_tokens: int
) -> Graph:
    graph = Graph(State, context_schema=Deps)
    graph.add_node("retrieve", choosing.retrieve(candidates=candidates))
    graph.add_node("judge_utility", judge_utility(how=judgment, first=first))
    graph.add_node("answer", choosing.answer(max_tokens=max_tokens))
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", declined, {False: "judge_utility", True: "answer"})
    graph.add_edge("judge_utility", "answer")
    return graph
