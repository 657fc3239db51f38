"""FLARE-instruct: the model itself requests a search where it needs one, `[Search(query)]`.

Jiang, Xu, Gao, Sun, Liu, Dwivedi-Yu, Yang, Callan, Neubig: Active Retrieval Augmented
Generation, EMNLP 2023 (arXiv 2305.06983), section 3.1.

    START ── generate ──┬── END  no search requested
                ↑       │
                └── retrieve

The authors favour "[" while the model writes and forbid it right after a search. The reader port
cannot bias tokens, so `max_searches` bounds the loop instead: after the last search the task no
longer offers one.
"""

import re
from functools import partial
from typing import Literal

from langgraph.graph import START
from pydantic import NonNegativeInt

from hopscope.runtime.components import Count
from hopscope.runtime.execution.state import Deps, merge
from hopscope.runtime.execution.step import step
from hopscope.runtime.prompting import fitting
from hopscope.workflows.flare.writing import FlareGraph, FlareState, FlareUpdate, append

SEARCH = re.compile(r"\[\s*search\s*\(([^\n]*?)(?:\)\s*\]|\n|\Z)", re.IGNORECASE)
LONGEST_QUERY = 64
"""The most words of a query; a longer one keeps its last."""


def asked(text: str) -> tuple[str, str | None]:
    """The text before the first search, and its query; None if there is no search."""
    found = SEARCH.search(text)
    if found is None:
        return text, None
    words = found.group(1).strip(" \t\"'`").split()
    return text[: found.start()].rstrip(), " ".join(words[-LONGEST_QUERY:])


@step("generate")
def generate(state: FlareState, deps: Deps, *, max_searches: int, max_tokens: int) -> FlareUpdate:
    """Continue the answer up to a search, which is cut out of the answer."""
    text = state.get("text", "")
    past = state.get("queries", ())
    spent = len(past) >= max_searches
    prompt = partial(deps.prompts.render, "flare_instruct/generate", searching=not spent)
    generation = fitting.generate(
        deps,
        state.get("evidence", ()),
        partial(prompt, question=state["question"].text, written=text),
        max_tokens=max_tokens - state.get("length", 0),
        stop=("\n\n",) if spent else (")]", "\n\n"),
    )
    kept, query = asked(generation.text)
    searching = query is not None and not spent
    more = {"finish_reason": "length"} if searching else {}
    piece = generation.model_copy(update={"text": kept, **more})
    update = append(state, piece, max_tokens=max_tokens)
    if update.get("stop_reason") == "eos" and spent and max_searches:
        update["stop_reason"] = "max_steps"
    elif searching and "stop_reason" not in update:
        update |= {
            "queries": (*past, query or state["question"].text),
            "parse_ok": bool(query),
            "output": generation.text,
        }
    return update


@step("retrieve")
def retrieve(state: FlareState, deps: Deps, *, k: int) -> FlareUpdate:
    """The passages of the new search replace the earlier ones."""
    [hits] = deps.retriever.search([state["queries"][-1]], k=k)
    return {"evidence": merge((), hits)}


def next_step(state: FlareState) -> Literal["retrieve", "__end__"]:
    return "__end__" if "stop_reason" in state else "retrieve"


def build(
    *, k: Count = 2, max_searches: NonNegativeInt = 10, max_tokens: Count = 256
) -> FlareGraph:
    """`max_tokens` bounds the answer with its queries. A search without a query searches for the
    question."""
    graph = FlareGraph(FlareState, context_schema=Deps)
    graph.add_node("generate", generate(max_searches=max_searches, max_tokens=max_tokens))
    graph.add_node("retrieve", retrieve(k=k))
    graph.add_edge(START, "generate")
    graph.add_conditional_edges("generate", next_step)
    graph.add_edge("retrieve", "generate")
    return graph
