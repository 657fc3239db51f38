"""RankGPT: order the passages by relevance in windows from the tail, answer from the first.

Sun, Yan, Ma, Wang, Ren, Chen, Yin, Ren: Is ChatGPT Good at Search? Investigating Large Language
Models as Re-Ranking Agents, EMNLP 2023 (arXiv 2304.09542).

    START ── retrieve ── rank_relevance ──┬── answer ── END
                           ↑              │
                           └──────────────┘  one window after the other, up to the head
"""

from typing import Literal

from langgraph.graph import START

from hopscope.runtime.components import Count
from hopscope.runtime.execution.state import Deps, declined
from hopscope.runtime.execution.step import step
from hopscope.runtime.judgments.ranking import rank, windows
from hopscope.workflows.selection import choosing
from hopscope.workflows.selection.choosing import Graph, State, Update, choose, record

PROMPT_FOLDERS = ("selection",)
"""Where its prompts are, other than in a folder of its own name."""


@step("rank")
def rank_relevance(state: State, deps: Deps, *, window: int, stride: int, k: int) -> Update:
    """Rank one window of the list; after the last, its first `k` passages are chosen."""
    listed, t = state.get("by_relevance", state["candidates"]), state.get("t", 0)
    stretches = windows(len(listed), window, stride)
    here = stretches[t]
    ranked, ok = rank(deps, state["question"].text, listed[here], "relevance")
    listed = (*listed[: here.start], *ranked, *listed[here.stop :])
    chosen = choose(state, listed[:k], ok) if t + 1 == len(stretches) else Update()
    return {"t": t + 1, "by_relevance": listed, **chosen, **record(listed, ok)}


def next_step(state: State) -> Literal["rank_relevance", "answer"]:
    return "answer" if "chosen" in state else "rank_relevance"


def build(
    *,
    candidates: Count = 100,
    window: Count = 20,
    stride: Count = 10,
    k: Count = 5,
    max_tokens: Count = 32,
) -> Graph:
    windows(candidates, window, stride)  # an unusable stride fails before the first run
    graph = Graph(State, context_schema=Deps)
    graph.add_node("retrieve", choosing.retrieve(candidates=candidates))
    graph.add_node("rank_relevance", rank_relevance(window=window, stride=stride, k=k))
    graph.add_node("answer", choosing.answer(max_tokens=max_tokens))
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", declined, {False: "rank_relevance", True: "answer"})
    graph.add_conditional_edges("rank_relevance", next_step)
    return graph
