"""FLARE (direct): draft one sentence ahead and search if the model is unsure of its words.

Jiang, Xu, Gao, Sun, Liu, Dwivedi-Yu, Yang, Callan, Neubig: Active Retrieval Augmented
Generation, EMNLP 2023 (arXiv 2305.06983), in the conditions of the authors' code.

    START ── retrieve ──┬── look_ahead ⟲ ──┬── END    ⟲ sure: the draft stands
                ↑       ↓       ↑          │
                │    generate ──┘          │ a token below theta
                └───────┴── formulate ─────┘
"""

from typing import Literal

from langgraph.graph import START

from hopscope.runtime.components import Count, Share
from hopscope.runtime.execution.state import Deps, declined, merge
from hopscope.runtime.execution.step import step
from hopscope.runtime.types import Generation
from hopscope.workflows.flare import drafting, questions
from hopscope.workflows.flare.writing import FlareGraph, FlareState, FlareUpdate, Limit, append


@step("retrieve")
def retrieve(state: FlareState, deps: Deps, *, k: int) -> FlareUpdate:
    """New passages replace the evidence; the first query is the question."""
    rankings = deps.retriever.search(state.get("queries", (state["question"].text,)), k=k)
    return {"evidence": merge((), drafting.interleave(rankings, k))}


@step("generate")
def look_ahead(
    state: FlareState, deps: Deps, *, limit: Limit, theta: float, variant: drafting.Variant
) -> FlareUpdate:
    draft = drafting.write(state, deps, limit, blind=variant == "paper")
    sure = drafting.confident(draft, theta, at_threshold=variant == "code")
    if not draft.text.strip() or (sure and variant != "code"):
        return append(state, draft, max_tokens=limit.answer)
    return {"draft": draft, "sure": sure, "output": draft.text}


@step("generate")
def formulate(
    state: FlareState, deps: Deps, *, query: drafting.Query, beta: float, expand: bool
) -> FlareUpdate:
    draft = state["draft"] or Generation(text="")
    if query == "masked":
        masked = drafting.mask(draft, beta)
        return {"queries": (masked,) if masked else (), "output": masked}
    queries, ok = questions.formulate(state, deps, drafting.spans(draft, beta), expand=expand)
    update: FlareUpdate = {"queries": queries, "output": "\n".join(queries)}
    return update if ok is None else {**update, "parse_ok": ok}


@step("generate")
def generate(
    state: FlareState, deps: Deps, *, limit: Limit, variant: drafting.Variant
) -> FlareUpdate:
    """Write the sentence again, with the new documents. Where the search was declined, there are
    none, and the draft that was written with the same documents stands."""
    draft = state["draft"]
    if draft is None or variant == "paper" or not declined(state):
        draft = drafting.write(state, deps, limit)
    return append(state, draft, max_tokens=limit.answer)


def after_retrieval(state: FlareState) -> Literal["look_ahead", "generate"]:
    return "generate" if state.get("draft") else "look_ahead"


def after_draft(state: FlareState) -> Literal["look_ahead", "formulate", "generate", "__end__"]:
    if state["draft"] is None:
        return next_sentence(state)
    return "generate" if state["sure"] else "formulate"


def after_queries(state: FlareState) -> Literal["retrieve", "generate"]:
    return "retrieve" if state["queries"] else "generate"


def next_sentence(state: FlareState) -> Literal["look_ahead", "__end__"]:
    return "__end__" if "stop_reason" in state else "look_ahead"


def build(
    *,
    k: Count = 2,
    theta: Share = 0.8,
    beta: Share = 0.4,
    query: drafting.Query = "masked",
    variant: drafting.Variant = "mixed",
    ahead: Count = 64,
    max_tokens: Count = 256,
    expand: bool = True,
) -> FlareGraph:
    """Tokens below `theta` start a search. Tokens up to `beta` are masked, or become questions,
    with `expand` about the phrase that each span begins; without such tokens the query is the whole
    draft. `ahead` bounds a sentence, `max_tokens` the answer. `code` writes sure drafts again and
    searches at `theta` too; `paper` drafts without documents.
    """
    limit = Limit(sentence=ahead, answer=max_tokens)
    graph = FlareGraph(FlareState, context_schema=Deps)
    graph.add_node("retrieve", retrieve(k=k))
    graph.add_node("look_ahead", look_ahead(limit=limit, theta=theta, variant=variant))
    graph.add_node("formulate", formulate(query=query, beta=beta, expand=expand))
    graph.add_node("generate", generate(limit=limit, variant=variant))
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", after_retrieval)
    graph.add_conditional_edges("look_ahead", after_draft)
    graph.add_conditional_edges("formulate", after_queries)
    graph.add_conditional_edges("generate", next_sentence)
    return graph
