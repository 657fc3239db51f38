"""ITEM's loop in all its variants, on scripted replies."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.runtime.errors import ReaderError, UsageError
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Passage, Question, Run, Step
from hopscope.workflows import item
from tests.talk import Reply, ScriptedRetriever, Talker

QUESTION = Question(text="Who directed Moon Harbor?", answers=("Velora Tarn",))
FOUND = [Passage(id=str(i), title=f"T{i}", text=f"Text {i}.") for i in range(1, 5)]
STEPS = {
    "As": ["pseudo_answer", "judge_utility"],
    "ARs": ["pseudo_answer", "rank_relevance", "judge_utility"],
    "Ar": ["pseudo_answer", "rank_utility"],
    "ARr": ["pseudo_answer", "rank_relevance", "rank_utility"],
}


def ask(
    replies: list[Reply], found: list[Passage] = FOUND, **options: Any
) -> tuple[Run, Talker, ScriptedRetriever]:
    reader, retriever = Talker(replies), ScriptedRetriever({QUESTION.text: found})
    workflow = Workflow("item", item.build(**options), {})
    result = run(workflow, QUESTION, Deps(reader=reader, retriever=retriever))
    assert result.status == "ok", result.error
    assert result.usage.calls == len(reader.requests)
    return result, reader, retriever


def pick(*positions: int) -> str:
    return "My selection:[" + ",".join(f"[{i}]" for i in positions) + "]."


def order(*positions: int) -> str:
    return " > ".join(f"[{i}]" for i in positions)


def ids(owner: Run | Step) -> list[str]:
    return [passage.id for passage in owner.evidence]


def test_it_answers_and_judges_until_the_set_stays() -> None:
    replies: list[Reply] = ["Tarn", pick(2, 3), "Velora", pick(3, 2), "Velora Tarn"]
    result, _, retriever = ask(replies)
    assert [s.name for s in result.steps] == ["retrieve", *STEPS["As"] * 2, "answer"]
    assert retriever.queries == [QUESTION.text]
    assert (result.answer, result.stop_reason) == ("Velora Tarn", "set_stable")
    assert ids(result) == ["2", "3"]  # in the order of the candidates, not of the reply
    everything = ("1", "2", "3", "4")
    shown = [s.shown for s in result.steps]
    assert shown == [(), everything, everything, ("2", "3"), everything, ("2", "3")]
    assert [s.output for s in result.steps if s.kind == "judge"] == ['["2", "3"]'] * 2
    assert result.steps[4].stop_reason == "set_stable"
    assert not any(s.dangling for s in result.steps)


def test_judgments_see_the_last_answer_and_share_all_that_stands_before_it() -> None:
    _, reader, _ = ask(["Tarn", pick(2), "Velora", pick(2), "Velora Tarn"])
    one, two = reader.requests[1].prompt.messages, reader.requests[3].prompt.messages
    assert one[:-1] == two[:-1]
    assert "Tarn\n" in one[-1].content
    assert "Velora\n" in two[-1].content
    assert [m.role for m in one] == ["user", "assistant"] * 6 + ["user"]
    assert one[4].content == "[1] (T1) Text 1."
    assert one[5].content == "Received passage [1]."


def test_it_stops_after_m_iterations() -> None:
    result, *_ = ask(["a", pick(1), "b", pick(2), "c", pick(3), "d"])
    assert (result.stop_reason, ids(result), result.answer) == ("max_steps", ["3"], "d")
    assert result.steps[-2].stop_reason == "max_steps"


def test_one_iteration_is_enough_if_asked_for() -> None:
    result, *_ = ask(["a", pick(1), "b"], m=1)
    assert result.stop_reason == "max_steps"


def test_choosing_all_at_first_stops_only_if_the_first_set_counts() -> None:
    everything = pick(1, 2, 3, 4)
    result, *_ = ask(["a", everything, "b", everything, "c"])
    assert sum(s.kind == "judge" for s in result.steps) == 2
    result, *_ = ask(["a", everything, "b"], u0="candidates")
    assert sum(s.kind == "judge" for s in result.steps) == 1
    assert result.stop_reason == "set_stable"


@pytest.mark.parametrize(("reply", "ok"), [("I cannot tell.", False), ("My selection:[]", True)])
def test_where_nothing_is_chosen_all_candidates_are_read(reply: str, ok: bool) -> None:
    result, *_ = ask(["a", reply, "b", reply, "c"])
    assert result.stop_reason == "set_stable"
    assert [(s.output, s.parse_ok) for s in result.steps if s.kind == "judge"] == [("[]", ok)] * 2
    assert [s.shown for s in result.steps if s.name == "answer"] == [("1", "2", "3", "4")]
    assert ids(result) == ["1", "2", "3", "4"]


def test_a_set_may_grow_again() -> None:
    """Judgments are on all candidates, not on those chosen before."""
    result, *_ = ask(["a", pick(1), "b", pick(1, 2, 4), "c", pick(1, 2, 4), "d"])
    assert ids(result) == ["1", "2", "4"]


def test_like_answers_stop_before_the_judgment() -> None:
    """The passages are then those chosen before the last answer."""
    replies: list[Reply] = ["the cat sat on the mat", pick(2), "the cat is on the mat", "Tarn"]
    result, *_ = ask(replies, rouge_stop=5 / 6 - 1e-9)
    assert result.stop_reason == "answer_stable"
    assert [s.name for s in result.steps][-2:] == ["pseudo_answer", "answer"]
    assert ids(result) == ["2"]


@pytest.mark.parametrize(("equal", "reason"), [(False, "max_steps"), (True, "answer_stable")])
def test_drafts_exactly_at_the_answer_stop_end_it_in_the_code_only(
    equal: bool, reason: str
) -> None:
    """The paper stops where ROUGE-L is greater; it stopped where it was equal."""
    replies: list[Reply] = ["Tarn", pick(2), "Tarn", pick(2), "Tarn", pick(2), "Tarn"]
    result, *_ = ask(replies[: 4 if equal else 7], rouge_stop=1.0, rouge_equal=equal)
    assert result.stop_reason == reason


def test_with_the_answer_stop_an_unchanged_set_does_not_stop() -> None:
    result, *_ = ask(["a", pick(2), "b", pick(2), "c", pick(2), "d"], rouge_stop=0.7)
    assert result.stop_reason == "max_steps"


def test_silence_twice_is_no_like_answer() -> None:
    result, *_ = ask(["", pick(2), "", pick(2), "", pick(2), ""], rouge_stop=0.7)
    assert result.stop_reason == "max_steps"


def test_as_pointwise_asks_about_each_passage() -> None:
    yes, no = "My judgment: Yes, it helps.", "My judgment: No."
    once: list[Reply] = [no, yes, "who knows", yes]
    result, reader, _ = ask(["a", *once, "b", *once, "c"], judgment="pointwise")
    assert len(reader.requests) == (1 + 4) * 2 + 1
    assert ids(result) == ["2", "4"]
    assert result.steps[2].parse_ok is False
    assert result.steps[2].shown == ("1", "2", "3", "4")
    assert [r.prompt.shown for r in reader.requests[1:5]] == [("1",), ("2",), ("3",), ("4",)]


@pytest.mark.parametrize(
    ("judgment", "answer", "draft", "doubted"),
    [
        ("pointwise", "explicit", "Tarn", True),
        ("pointwise", "explicit", "", False),
        ("pointwise", "implicit", "Tarn", False),
        ("listwise", "explicit", "Tarn", False),
    ],
)
def test_one_passage_is_not_to_be_measured_by_a_wrong_answer(
    judgment: str, answer: str, draft: str, doubted: bool
) -> None:
    _, reader, _ = ask([draft, "", "x"], FOUND[:1], m=1, judgment=judgment, answer=answer)
    assert ("may be wrong" in reader.requests[1].prompt.text) == doubted


def test_implicit_answers_are_references_without_their_marker() -> None:
    replies: list[Reply] = ["Necessary information: [its director]", pick(2), "x", pick(2), "Tarn"]
    result, reader, _ = ask(replies, answer="implicit")
    drafts = [s for s in result.steps if s.name == "pseudo_answer"]
    assert [s.parse_ok for s in drafts] == [True, False]
    judgment = reader.requests[1].prompt.messages[-1].content
    assert "its director" in judgment
    assert "Necessary information" not in judgment
    assert reader.requests[-1].prompt.messages[-1].content.endswith("Give only the answer.")


def test_ars_judges_the_list_that_it_ranks_again_and_again() -> None:
    replies: list[Reply] = ["a", order(4, 3), pick(1, 3), "b", order(2, 1), pick(2, 3), "c"]
    result, *_ = ask(replies, variant="ARs")
    assert [s.name for s in result.steps] == ["retrieve", *STEPS["ARs"] * 2, "answer"]
    first, second = (s for s in result.steps if s.name == "rank_relevance")
    assert (first.shown, json.loads(first.output or "")) == (tuple("1234"), list("4312"))
    assert (second.shown, json.loads(second.output or "")) == (tuple("4312"), list("3412"))
    sets = [s for s in result.steps if s.kind == "judge"]
    assert [s.shown for s in sets] == [tuple("4312"), tuple("3412")]
    assert [s.output for s in sets] == ['["4", "1"]', '["4", "1"]']
    assert result.stop_reason == "set_stable"


def test_ar_takes_the_first_k_by_utility() -> None:
    replies: list[Reply] = ["a", order(4, 3), "b", order(2, 1), "c"]
    result, *_ = ask(replies, variant="Ar", k=2)
    ranks = [s for s in result.steps if s.name == "rank_utility"]
    assert [s.shown for s in ranks] == [tuple("1234"), tuple("4312")]
    assert [json.loads(s.output or "") for s in ranks] == [list("4312"), list("3412")]
    assert ids(result) == ["3", "4"]
    assert result.stop_reason == "set_stable"  # the order changed, the set did not


def test_ar_ranks_the_candidates_anew_if_asked_to() -> None:
    replies: list[Reply] = ["a", order(4, 3), "b", order(3, 4), "c"]
    result, *_ = ask(replies, variant="Ar", k=2, rerank="candidates")
    assert [s.shown for s in result.steps if s.name == "rank_utility"] == [tuple("1234")] * 2


def test_arr_ranks_by_relevance_and_then_by_utility() -> None:
    """The utility ranking does not feed the next relevance ranking."""
    replies: list[Reply] = ["a", order(4), order(4, 3), "b", order(3), order(1, 4), "c"]
    result, *_ = ask(replies, variant="ARr", k=2)
    assert [s.name for s in result.steps] == ["retrieve", *STEPS["ARr"] * 2, "answer"]
    shown = [s.shown for s in result.steps if s.kind == "rank"]
    assert shown == [tuple("1234"), tuple("4123"), tuple("4123"), tuple("2413")]
    chosen = [ids(s) for s in result.steps if s.name == "rank_utility"]
    assert chosen == [["3", "2"], ["2", "3"]]


def test_an_unreadable_ranking_keeps_the_order() -> None:
    result, *_ = ask(["a", "None is better.", "b", "", "c"], variant="Ar", k=3)
    assert ids(result) == ["1", "2", "3"]
    assert [s.parse_ok for s in result.steps if s.kind == "rank"] == [False, False]


@pytest.mark.parametrize("variant", STEPS)
@pytest.mark.parametrize("found", [FOUND, FOUND[:1]])
def test_a_silent_reader_ends_the_loop(variant: str, found: list[Passage]) -> None:
    result, reader, _ = ask([""] * 20, found, variant=variant)
    assert result.answer == ""
    assert result.stop_reason == "set_stable"
    assert len(reader.requests) == 2 * len(STEPS[variant]) + 1


@pytest.mark.parametrize("variant", STEPS)
@pytest.mark.parametrize("answer", ["explicit", "implicit"])
def test_an_empty_index_leaves_nothing_to_judge(variant: str, answer: str) -> None:
    result, reader, _ = ask(["a", "b"], [], variant=variant, answer=answer)
    assert (result.answer, result.evidence, result.stop_reason) == ("b", (), "set_stable")
    assert [s.name for s in result.steps] == ["retrieve", *STEPS[variant], "answer"]
    assert "Documents:" not in reader.requests[-1].prompt.text


@pytest.mark.parametrize("variant", ["ARs", "Ar", "ARr"])
def test_only_as_can_judge_pointwise(variant: Any) -> None:
    with pytest.raises(UsageError, match="variant=As"):
        item.build(variant=variant, judgment="pointwise")


@pytest.mark.parametrize("variant", STEPS)
def test_the_graph_is_the_papers(variant: Any) -> None:
    graph = item.build(variant=variant).compile().get_graph()
    edges = {(edge.source, edge.target) for edge in graph.edges}
    loop = STEPS[variant]
    assert set(graph.nodes) == {"__start__", "retrieve", *loop, "answer", "__end__"}
    assert {*zip(loop, [*loop[1:], loop[0]], strict=True)} <= edges
    assert (loop[-1], "answer") in edges


def test_long_passages_are_cut_under_the_same_key() -> None:
    long = Passage(title="Long", text="word " * 400)
    _, reader, _ = ask(["a", pick(1), "b", pick(1), "c"], [long])
    for request in reader.requests:
        assert request.prompt.text.count("word") == 300
        assert request.prompt.shown == (long.key,)


def test_braces_in_texts_are_not_fields() -> None:
    passage = Passage(id="1", title="{n}", text="{question} {0}")
    _, reader, _ = ask(["{x}", pick(1), "{y}", pick(1), "z"], [passage])
    assert "[1] ({n}) {question} {0}" in reader.requests[1].prompt.text


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from(sorted(STEPS)),
    st.lists(st.sampled_from([pick(1), pick(2, 3), order(2, 1), order(4), "no", "", "[0] 7"])),
)
def test_whatever_is_replied_the_loop_ends_and_the_calls_add_up(
    variant: str, replies: list[str]
) -> None:
    result, reader, _ = ask([*replies, *[""] * 10], variant=variant, k=2)
    rounds, rest = divmod(len(reader.requests) - 1, len(STEPS[variant]))
    assert (rest, len(result.steps)) == (0, 2 + rounds * len(STEPS[variant]))
    assert 2 <= rounds <= 3
    assert {p.id for p in result.evidence} <= {p.id for p in FOUND}
    assert result.evidence


def test_a_reader_that_fails_leaves_the_steps_it_took() -> None:
    deps = Deps(
        reader=Talker(["a", ReaderError("too long")]),
        retriever=ScriptedRetriever({QUESTION.text: FOUND}),
    )
    result = run(Workflow("item", item.build(), {}), QUESTION, deps)
    assert result.status == "failed"
    assert [s.name for s in result.steps] == ["retrieve", "pseudo_answer"]
