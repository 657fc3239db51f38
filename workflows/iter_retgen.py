"""Iter-RetGen: search again with the question and the last answer, and answer again.

Shao, Gong, Shen, Huang, Duan, Chen: Enhancing Retrieval-Augmented Large Language Models with
Iterative Retrieval-Generation Synergy, Findings of EMNLP 2023 (arXiv 2305.15294).

    START ── retrieve ── generate ──┬── END
                ↑                   │
                └───────────────────┘  `iterations` times
"""

from functools import partial
from typing import Literal

from langgraph.graph import START

from hopscope.runtime.components import Count
from hopscope.runtime.execution.state import Deps, Graph, State, Update, declined, merge
from hopscope.runtime.execution.step import step
from hopscope.runtime.prompting import fitting
from hopscope.runtime.texts.answers import normalise
from hopscope.runtime.texts.continuation import extract_answer

Output = Literal["answer", "reasoning"]


@step("retrieve")
def retrieve(state: State, deps: Deps, *, k: int) -> Update:
    """The new paragraphs replace the earlier ones."""
    written = state.get("thoughts", ("",))[-1]
    query = f"{state['question'].text} {written}".strip()
    [hits] = deps.retriever.search([query], k=k)
    return {"evidence": merge((), hits)}


@step("generate")
def generate(
    state: State,
    deps: Deps,
    *,
    iterations: int,
    output: Output,
    max_tokens: int,
    stop_when_stable: bool,
) -> Update:
    """Answer from these paragraphs alone: the last answer shapes the query, not the prompt."""
    prompt = partial(
        deps.prompts.render, f"iter_retgen/{output}", question=state["question"].text, thoughts=()
    )
    generation = fitting.generate(
        deps, state["evidence"], prompt, max_tokens=max_tokens, stop=("\n",)
    )
    text = generation.text.strip()
    written = (*state.get("thoughts", ()), text)
    update: Update = {"thoughts": written, "answer": text}
    if output == "reasoning":
        found = extract_answer(text)
        update |= {"answer": text if found is None else found, "parse_ok": found is not None}
    stable = normalise(update["answer"]) == normalise(state.get("answer", ""))
    if stop_when_stable and len(written) > 1 and stable:
        update["stop_reason"] = "answer_stable"
    elif len(written) >= iterations:
        update["stop_reason"] = "max_steps"
    return update


def after_retrieval(state: State) -> Literal["generate", "__end__"]:
    """The same paragraphs would give the same answer."""
    return "__end__" if declined(state) and "answer" in state else "generate"


def next_step(state: State) -> Literal["retrieve", "__end__"]:
    return "__end__" if "stop_reason" in state else "retrieve"


def build(
    *,
    k: Count = 5,
    iterations: Count = 3,
    output: Output = "answer",
    max_tokens: Count = 32,
    stop_when_stable: bool = False,
) -> Graph:
    """`output=reasoning` writes a chain of thought each time, as the paper does for multi-hop
    questions (give it some 300 tokens); `output=answer` follows FlashRAG's code."""
    graph = Graph(State, context_schema=Deps)
    graph.add_node("retrieve", retrieve(k=k))
    graph.add_node(
        "generate",
        generate(
            iterations=iterations,
            output=output,
            max_tokens=max_tokens,
            stop_when_stable=stop_when_stable,
        ),
    )
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", after_retrieval)
    graph.add_conditional_edges("generate", next_step)
    return graph
