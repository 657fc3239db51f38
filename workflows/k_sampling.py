"""k-sampling: judge the passages in their own and in shuffled orders, keep the majority's choice.

Zhang, Zhang, Guo, de Rijke, Fan, Cheng: Are Large Language Models Good at Utility Judgments?,
SIGIR 2024 (arXiv 2403.19216); each judgment is a UJ-ExpA reply, as in ITEM (arXiv 2406.11290).

    START ── retrieve ── judge_utility ──┬── vote ── answer ── END
                           ↑             │
                           └─────────────┘  in the retriever's order, then in `k` shuffled ones
"""

from collections import Counter
from functools import partial
from random import Random

from langgraph.graph import START
from pydantic import NonNegativeInt

from hopscope.runtime.components import Count
from hopscope.runtime.execution.state import Deps, declined
from hopscope.runtime.execution.step import step
from hopscope.runtime.judgments.utility_judgment import judge
from hopscope.runtime.types import Passage, digest
from hopscope.workflows.selection import choosing
from hopscope.workflows.selection.choosing import Graph, State, Update, choose, record

PROMPT_FOLDERS = ("selection",)
"""Where its prompts are, other than in a folder of its own name."""

LOOP = ["judge_utility", "vote"]


def shuffled(
    passages: tuple[Passage, ...], seed: int, question: str, t: int
) -> tuple[Passage, ...]:
    """The passages in the order of sample `t`: the given order first, then shuffles that depend
    on the arguments alone, not on earlier samples."""
    if t == 0:
        return passages
    return tuple(Random(digest(str(seed), question, str(t))).sample(passages, len(passages)))


@step("judge")
def judge_utility(state: State, deps: Deps) -> Update:
    """One sample: answer and select, in one reply."""
    question, t = state["question"].text, state.get("t", 0)
    listed = shuffled(state["candidates"], deps.seed, question, t)
    useful, ok = judge(deps, question, listed, "listwise", first="explicit")
    ballot = tuple(passage.key for passage in useful)
    return {"t": t + 1, "ballots": (*state.get("ballots", ()), ballot), **record(useful, ok)}


def next_step(state: State, *, k: int) -> str:
    return "judge_utility" if state["candidates"] and state["t"] <= k else "vote"


@step("vote")
def vote(state: State, deps: Deps) -> Update:
    """Keep the passages that more than half of the samples chose: four of six by default."""
    votes = Counter(key for ballot in state["ballots"] for key in ballot)
    half = len(state["ballots"]) / 2
    return choose(state, [p for p in state["candidates"] if votes[p.key] > half], None)


def build(*, k: NonNegativeInt = 5, candidates: Count = 10, max_tokens: Count = 32) -> Graph:
    graph = Graph(State, context_schema=Deps)
    graph.add_node("retrieve", choosing.retrieve(candidates=candidates))
    graph.add_node("judge_utility", judge_utility())
    graph.add_node("vote", vote())
    graph.add_node("answer", choosing.answer(max_tokens=max_tokens))
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", declined, {False: "judge_utility", True: "answer"})
    graph.add_conditional_edges("judge_utility", partial(next_step, k=k), LOOP)
    graph.add_edge("vote", "answer")
    return graph
