"""Closed book: answer from the reader's own knowledge; the baseline of every utility.

START ── answer ── END
"""

from langgraph.graph import START

from hopscope.runtime.components import Count
from hopscope.runtime.execution.state import Deps, Graph, State, Update
from hopscope.runtime.execution.step import step
from hopscope.runtime.types import GenerationRequest


@step("generate")
def answer(state: State, deps: Deps, *, max_tokens: int) -> Update:
    request = GenerationRequest(
        prompt=deps.prompts.render("closed_book/answer", question=state["question"].text),
        max_tokens=max_tokens,
        stop=("\n",),
        seed=deps.seed,
    )
    [[generation]] = deps.reader.generate([request])
    return {"answer": generation.text.strip(), "stop_reason": "answered"}


def build(*, max_tokens: Count = 32) -> Graph:
    graph = Graph(State, context_schema=Deps)
    graph.add_node("answer", answer(max_tokens=max_tokens))
    graph.add_edge(START, "answer")
    return graph
