"""Workflows that choose among candidates: retrieve them, choose, answer from the chosen.

Invariant: `evidence` is what the reader sees next: the chosen passages, or all candidates while
none is chosen.
"""

from collections.abc import Iterable, Sequence
from typing import TypedDict

from langgraph.graph import StateGraph

from hopscope.runtime import key_lists
from hopscope.runtime.execution import state as shared
from hopscope.runtime.execution.state import Deps, merge
from hopscope.runtime.execution.step import step
from hopscope.runtime.judgments import item_prompts
from hopscope.runtime.judgments.item_prompts import Form
from hopscope.runtime.judgments.selection import necessary_information
from hopscope.runtime.types import GenerationRequest, Passage

INFORMATION_TOKENS = 256  # of an implicit answer


class Choice(TypedDict, total=False):
    candidates: tuple[Passage, ...]
    """The retrieved passages, best first: the papers' D."""
    chosen: tuple[Passage, ...]
    """The last choice, which may be empty: the papers' U_t; absent before the first."""
    t: int
    """Rounds of the workflow's loop so far."""
    reference: str
    """The last pseudo-answer, a_t."""
    by_relevance: tuple[Passage, ...]
    """The candidates as last ranked by relevance, R_t."""
    by_utility: tuple[Passage, ...]
    """The candidates as last ranked by utility."""
    ballots: tuple[tuple[str, ...], ...]
    """Keys of the passages that each sample chose."""


class State(shared.State, Choice, total=False): ...


class Update(shared.Update, Choice, total=False): ...


Graph = StateGraph[State, Deps, State, State]


def stopped(state: State) -> bool:
    return "stop_reason" in state


def record(passages: Iterable[Passage], ok: bool | None) -> Update:
    """A step's record of the passages it chose or ranked.

    `ok`: whether the model's text could be read; None without a request.
    """
    listed = key_lists.write(passages)
    return {"output": listed} if ok is None else {"output": listed, "parse_ok": ok}


def choose(state: State, chosen: Sequence[Passage], ok: bool | None) -> Update:
    """The choice, which the reader sees next; an empty choice shows all candidates."""
    evidence = tuple(chosen) or state["candidates"]
    return {"chosen": tuple(chosen), "evidence": evidence, **record(chosen, ok)}


@step("retrieve")
def retrieve(state: State, deps: Deps, *, candidates: int) -> Update:
    [hits] = deps.retriever.search([state["question"].text], k=candidates)
    passages = merge((), hits)
    return {"candidates": passages, "evidence": passages}


def write(
    deps: Deps, question: str, evidence: Sequence[Passage], form: Form, *, max_tokens: int
) -> tuple[str, bool | None]:
    """An answer from the evidence, and whether an implicit one had the requested form."""
    explicit = form == "explicit"
    request = GenerationRequest(
        prompt=item_prompts.answer(question, evidence, form, prompts=deps.prompts),
        max_tokens=max_tokens if explicit else INFORMATION_TOKENS,
        stop=("\n",) if explicit else (),
        seed=deps.seed,
    )
    [[generation]] = deps.reader.generate([request])
    text = generation.text.strip()
    if explicit:
        return text, None
    information = necessary_information(text)
    return (text, False) if information is None else (information, True)


@step("generate")
def answer(state: State, deps: Deps, *, max_tokens: int) -> Update:
    """Answer from the chosen passages; from all candidates if none was chosen."""
    question, evidence = state["question"].text, state["evidence"]
    text, _ = write(deps, question, evidence, "explicit", max_tokens=max_tokens)
    return {"answer": text, "stop_reason": state.get("stop_reason", "answered")}
