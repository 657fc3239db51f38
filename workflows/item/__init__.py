"""ITEM: draft an answer, judge which passages are useful for it, answer again from those.

Zhang, Bi, Guo, Cheng: An Iterative Utility Judgment Framework Inspired by Philosophical
Relevance via LLMs, Findings of ACL 2026 (arXiv 2406.11290).

    START ── retrieve ── pseudo_answer ── judge_utility ──┬── answer ── END       As
                              ↑                           │
                              └───────────────────────────┘  until the set stays, or `m` times

    ARs: pseudo_answer ── rank_relevance ── judge_utility
    Ar:  pseudo_answer ── rank_utility;  ARr: pseudo_answer ── rank_relevance ── rank_utility
    with `rouge_stop`: pseudo_answer ── answer, when two drafts are alike
"""

from itertools import pairwise
from typing import Literal

from langgraph.graph import START

from hopscope.runtime.components import Count, Share
from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.state import Deps, declined
from hopscope.runtime.execution.step import step
from hopscope.runtime.judgments.item_prompts import Form
from hopscope.runtime.judgments.ranking import rank
from hopscope.runtime.judgments.utility_judgment import Judgment, judge
from hopscope.workflows.item._iterations import Start, Stop
from hopscope.workflows.selection import choosing
from hopscope.workflows.selection.choosing import Graph, State, Update, choose, record, stopped

PROMPT_FOLDERS = ("selection",)  # not in one of its own name
Variant = Literal["As", "ARs", "Ar", "ARr"]
Rerank = Literal["previous", "candidates"]

LOOPS: dict[Variant, tuple[str, ...]] = {
    "As": ("pseudo_answer", "judge_utility"),
    "ARs": ("pseudo_answer", "rank_relevance", "judge_utility"),
    "Ar": ("pseudo_answer", "rank_utility"),
    "ARr": ("pseudo_answer", "rank_relevance", "rank_utility"),
}


@step("generate")
def pseudo_answer(state: State, deps: Deps, *, form: Form, max_tokens: int, stop: Stop) -> Update:
    """a_t, from the passages chosen before; from all candidates if none has been chosen."""
    question, evidence = state["question"].text, state["evidence"]
    text, ok = choosing.write(deps, question, evidence, form, max_tokens=max_tokens)
    update: Update = {"reference": text} if ok is None else {"reference": text, "parse_ok": ok}
    if stop.alike(state, text):
        update["stop_reason"] = "answer_stable"
    return update


@step("rank")
def rank_relevance(state: State, deps: Deps, *, form: Form) -> Update:
    """R_t, from R_{t-1} and a_t."""
    listed = state.get("by_relevance", state["candidates"])
    ranked, ok = rank(deps, state["question"].text, listed, "relevance", state["reference"], form)
    return {"by_relevance": ranked, **record(ranked, ok)}


@step("judge")
def judge_utility(state: State, deps: Deps, *, how: Judgment, form: Form, stop: Stop) -> Update:
    """U_t, the passages of R_t, else of the candidates, that are useful given a_t."""
    listed = state.get("by_relevance", state["candidates"])
    useful, ok = judge(deps, state["question"].text, listed, how, state["reference"], form)
    return stop.settle(state, choose(state, useful, ok))


@step("rank")
def rank_utility(
    state: State, deps: Deps, *, k: int, again: bool, form: Form, stop: Stop
) -> Update:
    """U_t, the first `k` of R_t, else of the candidates, by utility given a_t."""
    before = state.get("by_utility", state["candidates"]) if again else state["candidates"]
    listed = state.get("by_relevance", before)
    ranked, ok = rank(deps, state["question"].text, listed, "utility", state["reference"], form)
    update: Update = {"by_utility": ranked, **choose(state, ranked[:k], ok), **record(ranked, ok)}
    return stop.settle(state, update)


def build(
    *,
    variant: Variant = "As",
    judgment: Judgment = "listwise",
    answer: Form = "explicit",
    m: Count = 3,
    candidates: Count = 10,
    k: Count = 5,
    u0: Start = "sentinel",
    rerank: Rerank = "previous",
    rouge_stop: Share | None = None,
    rouge_equal: bool = False,  # whether that value itself stops, too
    max_tokens: Count = 32,
) -> Graph:
    """A utility ranking keeps `k` passages. As in the authors' code the first set is compared with
    no other (`u0=candidates`: with all candidates), and Ar reranks its last ranking
    (`rerank=candidates`: the retriever's); as in the paper `rouge_stop` stops above its value."""
    if judgment == "pointwise" and variant != "As":
        raise UsageError(f"ITEM-{variant} works listwise only: judgment=pointwise needs variant=As")
    stop = Stop(m, u0, rouge_stop, rouge_equal)
    nodes = {
        "pseudo_answer": pseudo_answer(form=answer, max_tokens=max_tokens, stop=stop),
        "rank_relevance": rank_relevance(form=answer),
        "judge_utility": judge_utility(how=judgment, form=answer, stop=stop),
        "rank_utility": rank_utility(k=k, again=rerank == "previous", form=answer, stop=stop),
    }
    graph = Graph(State, context_schema=Deps)
    graph.add_node("retrieve", choosing.retrieve(candidates=candidates))
    for name in (loop := LOOPS[variant]):
        graph.add_node(name, nodes[name])
    graph.add_node("answer", choosing.answer(max_tokens=max_tokens))
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", declined, {False: loop[0], True: "answer"})
    graph.add_conditional_edges(loop[0], stopped, {True: "answer", False: loop[1]})
    for node, after in pairwise(loop[1:]):
        graph.add_edge(node, after)
    graph.add_conditional_edges(loop[-1], stopped, {True: "answer", False: loop[0]})
    return graph
