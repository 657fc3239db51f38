"""LLM calls and retrievals per question, as algorithms and papers count them.

T is the number of rounds a scripted reader makes; the formulas are those of the papers' cost.
"""

from typing import Any

import pytest

from hopscope import workflows
from hopscope.runtime import components
from hopscope.runtime.run import Workflow, run
from hopscope.runtime.state import Deps
from hopscope.runtime.types import Passage, Question, Run
from tests.talk import Reply, ScriptedRetriever, Talker

PASSAGES = [Passage(id=str(i), title=f"T{i}", text=f"text {i}") for i in range(4)]
THOUGHT, ANSWER = "A film was made.", "So the answer is: X."
SELECTION = "My selection:[[1]]."


def ask(name: str, replies: list[Reply], **options: Any) -> Run:
    build = components.load(workflows, name).build
    deps = Deps(reader=Talker(replies), retriever=ScriptedRetriever(lambda _: PASSAGES))
    result = run(Workflow(name, build(**options), {}), Question(text="Who is it?"), deps)
    assert result.status == "ok", result.error
    return result


@pytest.mark.parametrize(
    ("name", "options", "replies", "calls", "retrievals"),
    [
        ("closed_book", {}, ["X"], 1, 0),
        ("naive", {}, ["X"], 1, 1),
        ("iter_retgen", {}, ["X", "Y", "Z"], 3, 3),  # T, T
        ("iter_retgen", {"iterations": 2}, ["X", "Y"], 2, 2),
        ("ircot", {}, [THOUGHT, THOUGHT, ANSWER, ANSWER], 4, 3),  # T + 1, T
        ("ircot", {"reader": False}, [THOUGHT, ANSWER], 2, 2),
        ("item", {"m": 3}, ["X", SELECTION, "X", SELECTION, "X"], 5, 1),  # 2t + 1 with t = 2
        ("vanilla", {}, [SELECTION, "X"], 2, 1),
        ("uj_expa", {}, [f"Answer: X. {SELECTION}", "X"], 2, 1),
        ("k_sampling", {"k": 5}, [f"Answer: X. {SELECTION}"] * 6 + ["X"], 7, 1),  # k + 1, answer
        ("rankgpt", {}, ["[2] > [1]", "X"], 2, 1),  # one window, answer
    ],
)
def test_a_question_costs_what_the_paper_says(
    name: str, options: dict[str, Any], replies: list[Reply], calls: int, retrievals: int
) -> None:
    result = ask(name, replies, **options)
    assert result.usage.calls == calls
    assert sum(step.query is not None for step in result.steps) == retrievals
