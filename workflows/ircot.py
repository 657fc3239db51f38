"""IRCoT: interleave retrieval with the sentences of a chain of thought.

Trivedi, Balasubramanian, Khot, Sabharwal: Interleaving Retrieval with Chain-of-Thought
Reasoning for Knowledge-Intensive Multi-Step Questions, ACL 2023 (arXiv 2212.10509), with the
loop of the authors' code.

    START ── retrieve ── reason ──┬── read ── END
                ↑                 │
                └─────────────────┘  until the answer marker, silence or `max_steps`
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Literal

from langgraph.graph import END, START

from hopscope.runtime.components import Count
from hopscope.runtime.execution.state import Deps, Graph, State, Update, declined, merge
from hopscope.runtime.execution.step import step
from hopscope.runtime.prompting.fitting import generate
from hopscope.runtime.texts.continuation import extract_answer, first_sentence
from hopscope.workflows._paragraphs import fresh

MAX_THOUGHT_TOKENS = 300
SHOWN_WORDS = 350  # of each paragraph

QUESTION_WORDS = frozenset(["who", "what", "when", "where", "why", "which", "how", "does", "is"])
CONCLUSION = ("thus ", "thus,", "so ", "so,", "that is,", "therefore", "hence")
"""Beginnings of sentences that only conclude."""
EQUATION = re.compile(r"\d [+-] \d[\d,]*+(?:\.\d++)?+(?<=\d) = \d")


def next_query(question: str, thoughts: Sequence[str]) -> str:
    """The last sentence that states a new fact, else the question, without question words. As in
    the authors' code, equations are spaced sums and differences, and "Who?" stays."""
    facts = [
        thought
        for thought in thoughts
        if not thought.lower().startswith(CONCLUSION) and not EQUATION.search(thought)
    ]
    words = (facts[-1] if facts else question).split()
    return " ".join(word for word in words if word.lower() not in QUESTION_WORDS)


@step("retrieve")
def retrieve(state: State, deps: Deps, *, k: int, cap: int, longest: int) -> Update:
    evidence = state.get("evidence", ())
    query = next_query(state["question"].text, state.get("thoughts", ()))
    if not query:
        return {"evidence": evidence}
    [hits] = deps.retriever.search([query], k=k)
    added = fresh(evidence, hits, longest=longest, shown=SHOWN_WORDS)
    return {"evidence": merge(evidence, added, cap=cap)}


def write(
    state: State,
    deps: Deps,
    prompt: Literal["ircot/reason", "ircot/read"],
    thoughts: Sequence[str] = (),
    *,
    keeps: Literal["first_sentence"] | None = None,
) -> str:
    """One line of reasoning over the paragraphs, continuing `thoughts`."""
    question, evidence, limit = state["question"].text, state["evidence"], MAX_THOUGHT_TOKENS
    asked = partial(deps.prompts.render, prompt, question=question, thoughts=thoughts)
    return generate(deps, evidence, asked, max_tokens=limit, stop=("\n",), keeps=keeps).text


@step("generate")
def reason(state: State, deps: Deps, *, max_steps: int) -> Update:
    thoughts = state.get("thoughts", ())
    thought = first_sentence(write(state, deps, "ircot/reason", thoughts, keeps="first_sentence"))
    update: Update = {"thoughts": (*thoughts, thought), "output": thought}
    if not thought:
        update["stop_reason"] = "empty_generation"
    elif extract_answer(thought) is not None:
        update["stop_reason"] = "answer_marker"
    elif len(thoughts) + 1 >= max_steps:
        update["stop_reason"] = "max_steps"
    return update


def next_step(state: State) -> Literal["retrieve", "read"]:
    return "read" if "stop_reason" in state else "retrieve"


@step("generate")
def read(state: State, deps: Deps, *, reader: bool) -> Update:
    """Answer anew from the paragraphs; the chain only served to retrieve them. Without `reader`
    the answer is extracted from the chain, if there is one."""
    thoughts = state.get("thoughts", ())
    text = write(state, deps, "ircot/read") if reader or not thoughts else " ".join(thoughts)
    answer = extract_answer(text)
    found = text.strip() if answer is None else answer
    return {"answer": found, "parse_ok": answer is not None, "output": text}


def build(
    *,
    k: Count = 4,
    max_steps: Count = 10,
    cap: Count = 15,
    longest: Count = 600,
    reader: bool = True,
) -> Graph:
    """`cap` bounds the paragraphs held; paragraphs of more than `longest` words are left out;
    `reader=false` extracts the answer from the chain."""
    graph = Graph(State, context_schema=Deps)
    graph.add_node("retrieve", retrieve(k=k, cap=cap, longest=longest))
    graph.add_node("reason", reason(max_steps=max_steps))
    graph.add_node("read", read(reader=reader))
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", declined, {False: "reason", True: "read"})
    graph.add_conditional_edges("reason", next_step)
    graph.add_edge("read", END)
    return graph
