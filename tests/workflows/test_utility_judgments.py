"""ITEM's baselines: single-shot judgments, k-sampling, RankGPT."""

import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.judgments.ranking import windows
from hopscope.runtime.types import Passage, Question, Run
from hopscope.workflows import k_sampling, rankgpt, uj_expa, uj_impa, vanilla
from tests.talk import Reply, ScriptedRetriever, Talker

QUESTION = Question(text="Who directed Moon Harbor?", answers=("Velora Tarn",))
SINGLE_SHOT = [vanilla, uj_expa, uj_impa]


def passages(n: int) -> list[Passage]:
    return [Passage(id=str(i), title=f"T{i}", text=f"Text {i}.") for i in range(1, n + 1)]


def ask(
    workflow: ModuleType, replies: list[Reply], n: int = 4, *, seed: int = 0, **options: Any
) -> tuple[Run, Talker]:
    reader, retriever = Talker(replies), ScriptedRetriever({QUESTION.text: passages(n)})
    built = Workflow(workflow.__name__, workflow.build(**options), {})
    result = run(built, QUESTION, Deps(reader=reader, retriever=retriever, seed=seed))
    assert result.status == "ok", result.error
    assert result.usage.calls == len(reader.requests)
    return result, reader


def ids(result: Run) -> list[str]:
    return [passage.id for passage in result.evidence]


def pick(*positions: object) -> str:
    return "My selection:[" + ",".join(f"[{i}]" for i in positions) + "]."


@pytest.mark.parametrize("workflow", SINGLE_SHOT)
def test_a_single_reply_selects_and_a_second_answers(workflow: ModuleType) -> None:
    result, _ = ask(workflow, ["Answer: 4 men\n" + pick(3, 1), "Tarn"])
    assert [s.name for s in result.steps] == ["retrieve", "judge_utility", "answer"]
    assert [s.usage.calls for s in result.steps] == [0, 1, 1]
    assert ids(result) == ["1", "3"]
    assert [s.shown for s in result.steps] == [(), tuple("1234"), ("1", "3")]
    assert (result.answer, result.stop_reason) == ("Tarn", "answered")


def test_each_asks_for_what_it_is_named_after() -> None:
    tasks = [ask(w, ["", ""])[1].requests[0].prompt.messages[-1].content for w in SINGLE_SHOT]
    assert ["Answer: ..." in task for task in tasks] == [False, True, False]
    assert ["Necessary information:" in task for task in tasks] == [False, False, True]
    assert all("My selection:" in task for task in tasks)
    assert not any("Reference" in task for task in tasks)


@pytest.mark.parametrize("workflow", SINGLE_SHOT)
def test_pointwise_asks_once_for_each_passage(workflow: ModuleType) -> None:
    yes, no = "Answer: no.\nMy judgment: Yes.", "Answer: yes.\nMy judgment: No."
    result, reader = ask(workflow, [no, yes, yes, no, "Tarn"], judgment="pointwise")
    assert len(reader.requests) == 4 + 1
    assert ids(result) == ["2", "3"]


@pytest.mark.parametrize("workflow", [uj_expa, uj_impa])
def test_a_reply_that_ends_before_its_selection_selects_nothing(workflow: ModuleType) -> None:
    result, _ = ask(workflow, ["Answer: 3 men and 4 women", "Tarn"])
    assert result.steps[1].parse_ok is False
    assert result.steps[1].output == "[]"
    assert ids(result) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("workflow", [*SINGLE_SHOT, k_sampling, rankgpt])
@pytest.mark.parametrize("options", [{}, {"candidates": 3}])
def test_an_empty_index_leaves_one_call(workflow: ModuleType, options: dict[str, int]) -> None:
    result, _ = ask(workflow, ["Tarn"], 0, **options)
    assert (result.answer, result.evidence, result.stop_reason) == ("Tarn", (), "answered")
    assert all(s.parse_ok is None for s in result.steps)


@pytest.mark.parametrize("workflow", [*SINGLE_SHOT, k_sampling, rankgpt])
def test_a_silent_reader_gets_all_candidates_to_answer_from(workflow: ModuleType) -> None:
    result, reader = ask(workflow, [""] * 7)
    assert result.answer == ""
    assert reader.requests[-1].prompt.shown == ("1", "2", "3", "4")


def test_k_sampling_keeps_what_four_of_six_choose() -> None:
    """The positions in a reply are those of its own order."""
    orders = [
        k_sampling.shuffled(tuple(passages(4)), 7, QUESTION.text, t)  # as the workflow will
        for t in range(6)
    ]
    wanted = [{"1", "2"}, {"1", "2"}, {"1", "2"}, {"1", "3"}, {"3"}, {"2", "3"}]
    replies: list[Reply] = [
        pick(*(i for i, p in enumerate(order, start=1) if p.id in chosen))
        for order, chosen in zip(orders, wanted, strict=True)
    ]
    result, reader = ask(k_sampling, [*replies, "Tarn"], seed=7)
    assert len(reader.requests) == 6 + 1
    names = [s.name for s in result.steps]
    assert names == ["retrieve", *["judge_utility"] * 6, "vote", "answer"]
    assert [s.kind for s in result.steps][-2] == "vote"
    assert ids(result) == ["1", "2"]  # 4, 4 and 3 votes
    shown = [r.prompt.shown for r in reader.requests[:6]]
    assert shown == [tuple(p.key for p in order) for order in orders]


def test_shuffles_depend_on_the_seed_and_the_question_alone() -> None:
    found = tuple(passages(10))

    def orders(seed: int, question: str) -> list[list[str]]:
        return [[p.id for p in k_sampling.shuffled(found, seed, question, t)] for t in range(6)]

    first = orders(0, "q")
    assert first == orders(0, "q")
    assert first[0] == [p.id for p in found]
    assert len({tuple(order) for order in first}) == 6  # chance of a false failure: 4e-6
    assert first != orders(1, "q")
    assert first != orders(0, "r")
    # The same on every machine and in every process.
    assert first[1] == ["4", "3", "9", "1", "7", "2", "8", "10", "5", "6"]


def test_k_sampling_asks_k_times_more_often() -> None:
    result, _ = ask(k_sampling, [pick(1), pick(1), pick(1), "Tarn"], 1, k=2)
    assert ids(result) == ["1"]


@pytest.mark.parametrize(
    ("n", "starts"),
    [
        (100, [80, 70, 60, 50, 40, 30, 20, 10, 0]),
        (25, [5, 0]),
        (15, [0]),
        (20, [0]),
        (21, [1, 0]),
        (30, [10, 0]),
        (1, [0]),
        (0, [0]),
    ],
)
def test_vector_20_windows_reach_the_head_and_fit_short_lists(n: int, starts: list[int]) -> None:
    assert [window.start for window in windows(n, 20, 10)] == starts


@given(st.integers(0, 300), st.integers(1, 40), st.data())
def test_windows_cover_the_list_from_tail_to_head(n: int, size: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, size))
    found = windows(n, size, stride)
    assert {i for window in found for i in range(n)[window]} == set(range(n))
    assert found[0].stop == n
    assert all(len(range(n)[window]) == min(size, n) for window in found)
    assert [w.start for w in found] == sorted({w.start for w in found}, reverse=True)


@pytest.mark.parametrize(("window", "stride"), [(20, 0), (20, 21), (0, 0)])
def test_windows_that_leave_gaps_are_refused(window: int, stride: int) -> None:
    with pytest.raises(UsageError, match="stride"):
        rankgpt.build(window=window, stride=stride)


def test_rankgpt_carries_the_best_from_the_tail_to_the_head() -> None:
    last_first: list[Reply] = ["[20] > [19]", "[15]", "Tarn"]
    result, reader = ask(rankgpt, last_first, 25, k=3)
    assert [s.name for s in result.steps] == ["retrieve", *["rank_relevance"] * 2, "answer"]
    first, second = (s for s in result.steps if s.kind == "rank")
    assert first.shown == tuple(str(i) for i in range(6, 26))
    # The second window begins at the head: five passages that it has not seen, and fifteen.
    assert second.shown[:7] == ("1", "2", "3", "4", "5", "25", "24")
    assert len(second.shown) == 20
    assert ids(result) == ["13", "1", "2"]
    ranking = json.loads(second.output or "")
    assert sorted(map(int, ranking)) == list(range(1, 26))
    assert [len(r.prompt.messages) for r in reader.requests[:2]] == [4 + 2 * 20 + 1] * 2


@pytest.mark.parametrize(("n", "calls"), [(100, 10), (25, 3), (15, 2)])
def test_rankgpt_calls_once_for_each_window_and_once_to_answer(n: int, calls: int) -> None:
    _, reader = ask(rankgpt, ["[2] > [1]"] * (calls - 1) + ["Tarn"], n)
    assert len(reader.requests) == calls


def test_an_unreadable_ranking_keeps_the_retrievers_order() -> None:
    result, _ = ask(rankgpt, ["They are all good.", "Tarn"], 8)
    assert result.steps[1].parse_ok is False
    assert ids(result) == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("workflow", "node"), [(k_sampling, "judge_utility"), (rankgpt, "rank_relevance")]
)
def test_the_loop_is_in_the_graph(workflow: ModuleType, node: str) -> None:
    edges = {(e.source, e.target) for e in workflow.build().compile().get_graph().edges}
    assert (node, node) in edges
