"""The run's ranking: the order that its workflow decided. Real workflows, scripted replies."""

from typing import Any

import pytest
from langgraph.graph import StateGraph

from hopscope.lab.export import trec
from hopscope.runtime import key_lists
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Passage, Question, Run
from hopscope.tracing.answer_metrics import exact_match
from hopscope.tracing.erag.labels import ERAG
from hopscope.tracing.reports.shown import shown_passages
from hopscope.workflows import eor, item, k_sampling, naive, rankgpt, self_ask
from tests.fakes import ReaderByEvidence, reply
from tests.talk import ScriptedRetriever, Talker

QUESTION = Question(text="Who directed Moon Harbor?", answers=("Velora Tarn",), id="q")
RELEVANCE = "[4] > [2] > [3] > [1]"
FOUND = [Passage(id=str(i), title=f"T{i}", text=f"Text {i}.") for i in range(1, 7)]


def ask(built: StateGraph[Any, Any, Any, Any], *replies: str, n: int = 6) -> Run:
    deps = Deps(reader=Talker(replies), retriever=ScriptedRetriever({QUESTION.text: FOUND[:n]}))
    result = run(Workflow("w", built, {}), QUESTION, deps)
    assert result.status == "ok", result.error
    return result


def ranking(result: Run) -> str:
    """The passages' ids, which are digits; the export for trec_eval must say the same."""
    found = tuple(shown_passages(result))
    assert trec.of_run(result).passages == found
    return "".join(found)


def test_rankgpt_shows_the_tail_first_and_ranks_the_head_first() -> None:
    """The ranking was 3 4 5 6 1 2, in which the window at the tail was shown first, so the gold
    that RankGPT put first counted as fifth."""
    built = rankgpt.build(candidates=6, window=4, stride=2, k=2)
    result = ask(built, "[2] > [1] > [3] > [4]", "[1] > [4] > [3] > [2]", "Velora Tarn")
    assert "".join(result.steps[1].shown) == "3456"
    assert ranking(result) == "134256"
    labels = {(p.id,): [reply("Velora Tarn" if p.id == "1" else "Odd Fen")] for p in FOUND}
    [*_, whole] = ERAG(ReaderByEvidence(labels), exact_match.build()).appraise(result)
    assert whole.measures["RR"].value == 1


@pytest.mark.parametrize(
    ("options", "replies", "ranked"),
    [
        # A ranking by utility: the whole list, not only the first k.
        ({"variant": "Ar", "k": 2}, ["a", "[3] > [1]", "b"], "3124"),
        # A choice keeps the order of the candidates; the others follow.
        ({"variant": "As"}, ["a", "My selection:[[4],[2]].", "b"], "2413"),
        # A choice among ranked passages: both the chosen and the rest in the order of the ranking.
        (
            {"variant": "ARs"},
            ["a", RELEVANCE, "My selection:[[2],[3]].", "b"],
            "2341",
        ),
        # Nothing chosen: the ranking by relevance stands, though the evidence is all candidates.
        ({"variant": "ARs"}, ["a", RELEVANCE, "My selection:[].", "b"], "4231"),
        ({"variant": "ARr", "k": 1}, ["a", "[4] > [3]", "[2] > [1]", "b"], "3412"),
    ],
)
def test_item_ranks_as_its_last_iteration_decided(
    options: dict[str, Any], replies: list[str], ranked: str
) -> None:
    assert ranking(ask(item.build(m=1, **options), *replies, n=4)) == ranked


def test_ballots_of_k_sampling_decide_nothing_before_the_vote() -> None:
    built = k_sampling.build(k=1, candidates=4)
    both = [f"Answer: x\nMy selection:[{p}]." for p in ("[1],[4]", "[1],[2],[3],[4]")]
    result = ask(built, *both, "Velora Tarn", n=4)
    chosen = key_lists.read(result.steps[-2].output)
    assert chosen == ("1", "4")
    assert ranking(result) == "1423"


def test_a_vote_of_eor_puts_what_the_winner_found_first() -> None:
    """The second and the third agree, and of these the second comes first in the pool."""
    built = eor.build(pool="Wiki@2,Wiki@RR@1,Wiki@RR@2", similarities="em=1", depth=4)
    result = ask(built, "Odd Fen", "[4] > [1]", "Velora Tarn", "Velora Tarn", n=4)
    assert [p.id for p in result.evidence] == ["4"]
    assert ranking(result) == "4123"


def test_without_a_decision_the_order_of_showing_stands() -> None:
    assert ranking(ask(naive.build(k=3), "Velora Tarn")) == "123"
    turns = [" Yes.\nFollow up: Who?", " So the final answer is: Velora Tarn"]
    result = ask(self_ask.build(k=2), *turns)
    assert ranking(result) == "12"


@pytest.mark.parametrize("text", [None, "", "Tarn", "3", '{"a": 1}', "[1, 2]", "[" * 100_000])
def test_what_is_no_list_of_keys_reads_as_none(text: str | None) -> None:
    assert key_lists.read(text) is None
