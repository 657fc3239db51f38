"""Read what one search with the question finds, and answer.

Lewis et al.: Retrieval-Augmented Generation for Knowledge-Intensive NLP Tasks, NeurIPS 2020
(arXiv 2005.11401).

    START ── look ── say ── END
"""

from langgraph.graph import START

from hopscope.runtime.components import Count
from hopscope.runtime.execution.state import Deps, Graph, State, Update, merge
from hopscope.runtime.execution.step import step
from hopscope.runtime.types import GenerationRequest, Message, Prompt


@step("retrieve")
def look(state: State, deps: Deps, *, k: int) -> Update:
    [hits] = deps.retriever.search([state["question"].text], k=k)
    return {"evidence": merge((), hits)}


@step("generate")
def say(state: State, deps: Deps) -> Update:
    passages = state.get("evidence", ())
    documents = "\n".join(passage.text for passage in passages)
    prompt = Prompt(
        messages=(Message(role="user", content=f"{documents}\n{state['question'].text}"),),
        shown=tuple(passage.key for passage in passages),
    )
    [[reply]] = deps.reader.generate([GenerationRequest(prompt=prompt, seed=deps.seed)])
    return {"answer": reply.text, "stop_reason": "answered"}


def build(*, k: Count = 2) -> Graph:
    graph = Graph(State, context_schema=Deps)
    graph.add_node("look", look(k=k))
    graph.add_node("say", say())
    graph.add_edge(START, "look")
    graph.add_edge("look", "say")
    return graph
