"""Self-Ask: the model asks follow-up questions; each is searched before it answers it.

Press, Zhang, Min, Schmidt, Smith, Lewis: Measuring and Narrowing the Compositionality Gap in
Language Models, Findings of EMNLP 2023 (arXiv 2210.03350), with the loop and the back-off of
Yoran, Wolfson, Ram, Berant: Making Retrieval-Augmented Language Models Robust to Irrelevant
Context, ICLR 2024 (arXiv 2310.01558).

    START ── retrieve ── ask ──┬── END
                ↑              │        with `back_off`: ask ── verify ──┬── END
                └──────────────┘                                        └── closed_book ── END
"""

from functools import partial
from typing import Literal

from langgraph.graph import END, START

from hopscope.runtime.components import Count
from hopscope.runtime.errors import EntailmentError
from hopscope.runtime.execution.state import Deps, declined, merge
from hopscope.runtime.execution.step import step
from hopscope.runtime.prompting import fitting
from hopscope.runtime.types import GenerationRequest
from hopscope.workflows.self_ask import dialogue_form as form
from hopscope.workflows.self_ask.dialogue_form import SelfAskGraph, SelfAskState, SelfAskUpdate

Contexts = Literal["append", "replace"]


@step("retrieve")
def retrieve(state: SelfAskState, deps: Deps, *, k: int, contexts: Contexts) -> SelfAskUpdate:
    turns = state.get("thoughts", ())
    query = (form.read(turns[-1]).follow_up if turns else None) or state["question"].text
    [hits] = deps.retriever.search([query], k=k)
    return {"evidence": merge(state.get("evidence", ()) if contexts == "append" else (), hits)}


@step("generate")
def ask(state: SelfAskState, deps: Deps, *, rounds: int, max_tokens: int) -> SelfAskUpdate:
    """Answer the last follow-up, then ask the next one or give the final answer."""
    turns = state.get("thoughts", ())
    so_far = form.closing(turns) if declined(state) else form.dialogue(turns)
    generation = fitting.generate(
        deps,
        state["evidence"],
        partial(
            deps.prompts.render,
            "self_ask/ask",
            question=state["question"].text,
            dialogue=so_far,
        ),
        max_tokens=max_tokens,
        stop=(f"\n{form.INTERMEDIATE}",),
    )
    turn = form.end(generation.text) if declined(state) else form.read(generation.text)
    update: SelfAskUpdate = {"thoughts": (*turns, turn.text), "output": turn.text}
    update["parse_ok"] = turn.follow_up is not None or turn.answer is not None
    if turn.answer is not None:
        update["stop_reason"] = "policy" if declined(state) else "answer_marker"
    elif turn.follow_up is None:
        update["stop_reason"] = "parse_failure" if turn.text else "empty_generation"
    elif len(turns) + 1 >= rounds:
        update["stop_reason"] = "max_steps"
    if "stop_reason" in update:
        update["answer"] = turn.answer or ""
    return update


@step("judge")
def verify(state: SelfAskState, deps: Deps) -> SelfAskUpdate:
    """Check each answer against its question's passages, the final one against all evidence."""
    if deps.entailment is None:
        raise EntailmentError("self_ask with back_off needs an entailment model: give one")
    rankings = [past.ranked for past in state["steps"] if past.name == "retrieve"]
    said = form.statements(
        state["question"].text, state["answer"], state["evidence"], state["thoughts"], rankings
    )
    least = min(map(form.support, deps.entailment.classify(said)))
    return {"entailed": least > form.ENTAILED, "output": f"{least:.3f}"}


@step("generate")
def closed_book(state: SelfAskState, deps: Deps, *, max_tokens: int) -> SelfAskUpdate:
    prompt = deps.prompts.render("self_ask/closed_book", question=state["question"].text)
    request = GenerationRequest(prompt=prompt, max_tokens=max_tokens, stop=("\n",), seed=deps.seed)
    [[generation]] = deps.reader.generate([request])
    return {"answer": generation.text.strip()}


def next_step(state: SelfAskState) -> Literal["retrieve", "done"]:
    return "done" if "stop_reason" in state else "retrieve"


def trust(state: SelfAskState) -> Literal["closed_book", "__end__"]:
    return "__end__" if state["entailed"] else "closed_book"


def build(
    *,
    k: Count = 1,
    rounds: Count = 6,
    contexts: Contexts = "append",
    back_off: bool = False,
    max_tokens: Count = 100,
) -> SelfAskGraph:
    """`contexts=replace` shows only the passages of the last follow-up, as FlashRAG does.
    `back_off` answers closed-book unless the documents entail every answer in the dialogue."""
    graph = SelfAskGraph(SelfAskState, context_schema=Deps)
    graph.add_node("retrieve", retrieve(k=k, contexts=contexts))
    graph.add_node("ask", ask(rounds=rounds, max_tokens=max_tokens))
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "ask")
    done = "verify" if back_off else END
    graph.add_conditional_edges("ask", next_step, {"retrieve": "retrieve", "done": done})
    if back_off:
        graph.add_node("verify", verify())
        graph.add_node("closed_book", closed_book(max_tokens=max_tokens))
        graph.add_conditional_edges("verify", trust)
    return graph
