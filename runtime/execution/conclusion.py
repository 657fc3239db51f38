"""The end of a run whose budget is spent before its workflow has an answer.

An answer that the workflow has reached stands. Without one, the reader answers the question once
more from the evidence so far, with the budget that is reserved for the answer. If even that is
spent, the answer is extracted from the reader's last reply.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from hopscope.runtime.errors import BudgetExceededError
from hopscope.runtime.execution.state import Deps, Update
from hopscope.runtime.execution.step import carry_out
from hopscope.runtime.prompting.fitting import generate
from hopscope.runtime.texts.final_answer import extract_answer
from hopscope.runtime.types import Step

MAX_TOKENS = 32


def conclude(state: Mapping[str, Any], deps: Deps) -> Update:
    """Answer from the evidence, in the prompt of naive RAG."""
    prompt = partial(deps.prompts.render, "shared/answer", question=state["question"].text)
    evidence = state.get("evidence", ())
    generation = generate(deps, evidence, prompt, max_tokens=MAX_TOKENS, stop=("\n",))
    return {"answer": generation.text.strip()}


def end(state: Mapping[str, Any], deps: Deps, reached: BudgetExceededError) -> dict[str, Any]:
    """The state with an answer, and the reached limit as its stop reason."""
    ended: dict[str, Any] = {**state, "stop_reason": reached.stop_reason}
    steps: list[Step] = ended.get("steps", [])
    if reached.step is not None and (reached.step.exchanges or reached.step.retrieved):
        steps = ended["steps"] = [*steps, reached.step]
    if "answer" in ended:
        return ended
    try:
        update = carry_out("conclude", "generate", partial(conclude, ended), ended, deps, last=True)
    except BudgetExceededError:
        replies = [
            g.text for s in steps for e in s.exchanges for g in e.generations if g.text.strip()
        ]
        last = " ".join(replies[-1].split()) if replies else ""
        return {**ended, "answer": extract_answer(last) or last}
    return {**ended, **update, "steps": [*steps, *update["steps"]]}
