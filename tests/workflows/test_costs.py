"""LLM calls and retrievals per question of every workflow, as the papers count them.

T is the number of rounds a scripted reader makes, t those of ITEM, n the candidates.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from hopscope import workflows
from hopscope.runtime import components
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Passage, Question
from tests.probes import Speaker, script
from tests.talk import ScriptedRetriever

PASSAGES = [Passage(id=str(i), title=f"T{i}", text=f"text {i}") for i in range(1, 5)]
THOUGHT, UNSURE, ANSWER = "A film was made.", "It was old.", "So the answer is: X."
SEARCH, ASKED = "[Search(a film)]", "Yes.\nFollow up: Who made it?"
WANTED, GIVEN = "<search> a film </search>", "<answer> X </answer>"
CALLED = '{"name": "search", "arguments": {"query": "a film"}}'
SELECTION, RANKING = "My selection:[[1]].", "[1] > [2] > [3] > [4]"
BOTH = f"Answer: X. {SELECTION}"
POINTWISE = {"judgment": "pointwise"}
NO, YES = "My judgment: No.", "My judgment: Yes."
EACH = [YES, NO, NO, NO]

COSTS: list[tuple[str, Mapping[str, Any], Sequence[str], int, int]] = [
    ("closed_book", {}, ["X"], 1, 0),
    ("naive", {}, ["X"], 1, 1),
    ("iter_retgen", {}, ["X", "Y", "Z"], 3, 3),  # T, T
    ("iter_retgen", {"iterations": 2}, ["X", "Y"], 2, 2),
    ("ircot", {}, [THOUGHT, THOUGHT, ANSWER, ANSWER], 3 + 1, 3),  # T + 1, T
    ("ircot", {"reader": False}, [THOUGHT, ANSWER], 2, 2),
    ("flare", {}, [f"{THOUGHT} On.", ANSWER], 2, 1),  # T + triggers, 1 + triggers
    ("flare", {}, [f"{UNSURE} On.", f"{THOUGHT} On.", ANSWER], 2 + 1, 1 + 1),
    ("flare", {"variant": "code"}, [f"{THOUGHT} On."] * 2 + [ANSWER] * 2, 2 * 2, 1),  # 2T
    (
        "flare",  # one more for an asked span, if it is not expanded first
        {"query": "question", "expand": False},
        [f"{UNSURE} On.", "How old?", f"{THOUGHT} On.", ANSWER],
        2 + 1 + 1,
        1 + 1,
    ),
    ("flare_instruct", {}, [SEARCH, SEARCH, ANSWER], 2 + 1, 2),  # triggers + 1, triggers
    ("self_ask", {}, [ASKED, "X.\nSo the final answer is: X"], 2, 1 + 1),  # 1 + follow-ups
    ("self_ask", {}, [ASKED] * 6, 6, 1 + 5),  # at most 6; the last follow-up is not searched
    ("search_agent", {}, [WANTED, WANTED, GIVEN], 2 + 1, 2),  # searches + 1, searches
    ("search_agent", {"max_turns": 2}, [WANTED, WANTED, "X"], 2 + 1, 2),  # the last must answer
    ("search_agent", {}, ["I think.", GIVEN], 2, 0),  # it is told how to write
    ("react", {}, [CALLED, CALLED * 2, "X"], 2 + 1, 1 + 2),  # turns + 1, calls
    ("react", {"max_turns": 1, "at_once": 3}, [CALLED * 5, "X"], 1 + 1, 3),
    ("item", {}, ["X", SELECTION, "X", SELECTION, "X"], 2 * 2 + 1, 1),  # 2t, answer
    ("item", POINTWISE, ["X", *EACH, "X", *EACH, "X"], (1 + 4) * 2 + 1, 1),  # (1 + n)t, answer
    ("item", {"variant": "Ar"}, ["X", RANKING] * 2 + ["X"], 2 * 2 + 1, 1),
    ("item", {"variant": "ARs"}, ["X", RANKING, SELECTION] * 2 + ["X"], 3 * 2 + 1, 1),
    ("item", {"variant": "ARr"}, ["X", RANKING, RANKING] * 2 + ["X"], 3 * 2 + 1, 1),
    ("vanilla", {}, [SELECTION, "X"], 1 + 1, 1),  # 1 or n, and the answer
    ("vanilla", POINTWISE, [*EACH, "X"], 4 + 1, 1),
    ("uj_expa", {}, [BOTH, "X"], 1 + 1, 1),
    ("uj_impa", {}, [f"Necessary information: [X]\n{SELECTION}", "X"], 1 + 1, 1),
    ("k_sampling", {}, [BOTH] * 6 + ["X"], 6 + 1, 1),  # k + 1, answer
    ("rankgpt", {}, [RANKING, "X"], 1 + 1, 1),  # one window, answer
    ("rankgpt", {"window": 2, "stride": 1}, [RANKING] * 3 + ["X"], 1 + 2 + 1, 1),
    ("eor", {}, ["X", "summary", "X", "background", "X", "X"], 4 + 1 + 1, 1),  # R + #CP + PK
]


@pytest.mark.parametrize(("name", "options", "replies", "calls", "retrievals"), COSTS)
def test_a_question_costs_what_the_paper_says(
    name: str, options: Mapping[str, Any], replies: Sequence[str], calls: int, retrievals: int
) -> None:
    reader = Speaker(script(replies), unsure=("old",))
    retriever = ScriptedRetriever(lambda query: PASSAGES)
    build = components.load(workflows, name).build
    built = Workflow(name, build(**options), {})
    result = run(built, Question(text="Who is it?"), Deps(reader=reader, retriever=retriever))
    assert result.status == "ok", result.error
    assert result.usage.calls == len(reader.requests) == len(replies) == calls
    assert len(retriever.queries) == retrievals


def test_every_workflow_has_a_cost() -> None:
    assert {name for name, *_ in COSTS} == set(components.own(workflows))
