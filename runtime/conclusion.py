"""How a run ends whose budget is spent before its workflow has an answer.

The answer that the workflow has reached stands. Without one, the question is asked once more over
the evidence that there is, with what was kept back for it; where not even that is left, the last
thing the reader said must do, or the answer that it names.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from hopscope.runtime import fitting
from hopscope.runtime.errors import BudgetExceeded
from hopscope.runtime.final_answer import extract_answer
from hopscope.runtime.prompts import short_answer
from hopscope.runtime.state import Deps, Update
from hopscope.runtime.step import carry_out
from hopscope.runtime.types import GenerationRequest, Passage, Step

MAX_TOKENS = 32


def conclude(state: Mapping[str, Any], deps: Deps) -> Update:
    """Answer from the evidence, in the prompt of naive RAG."""

    def request(evidence: Sequence[Passage]) -> GenerationRequest:
        return GenerationRequest(
            prompt=short_answer(state["question"].text, evidence),
            max_tokens=MAX_TOKENS,
            stop=("\n",),
            seed=deps.seed,
        )

    generation = fitting.generate(deps, state.get("evidence", ()), request)
    return {"answer": generation.text.strip()}


def end(state: Mapping[str, Any], deps: Deps, reached: BudgetExceeded) -> dict[str, Any]:
    """The state with an answer and the limit that was reached as the reason to stop."""
    ended: dict[str, Any] = {**state, "stop_reason": reached.stop_reason}
    steps: list[Step] = ended.get("steps", [])
    if reached.step is not None and (reached.step.exchanges or reached.step.query is not None):
        steps = ended["steps"] = [*steps, reached.step]
    if "answer" in ended:
        return ended
    try:
        update = carry_out("conclude", "generate", partial(conclude, ended), ended, deps, last=True)
    except BudgetExceeded:
        said = [g.text for s in steps for e in s.exchanges for g in e.generations if g.text.strip()]
        last = " ".join(said[-1].split()) if said else ""
        return {**ended, "answer": extract_answer(last) or last}
    return {**ended, **update, "steps": [*steps, *update["steps"]]}
