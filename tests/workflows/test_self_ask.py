"""Self-Ask's loop and back-off, on scripted replies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Probabilities
from hopscope.runtime.types import Passage, Question, Run
from hopscope.workflows import self_ask
from hopscope.workflows.self_ask import dialogue_form
from tests.fakes import CONTRADICTS, ENTAILS, NEUTRAL, ScriptedEntailment
from tests.probes import Say, Speaker, script, task
from tests.talk import ScriptedRetriever

HARBOR = Passage(id="1", title="Moon Harbor", text="Velora Tarn directed it.")
TARN = Passage(id="2", title="Velora Tarn", text="She was born in Miskel.")
NOISE = Passage(id="3", title="Born", text="A film.")
QUESTION = Question(text="Where was the director of Moon Harbor born?", answers=("Miskel",))
WHO, WHERE = "Who directed Moon Harbor?", "Where was Velora Tarn born?"
FOUND = {QUESTION.text: [NOISE], WHO: [HARBOR], WHERE: [TARN]}
CHAIN = [
    f"Yes.\nFollow up: {WHO}\nIntermediate answer: invented",
    f"Velora Tarn.\nFollow up: {WHERE}\n",
    "Miskel.\nSo the final answer is: Miskel.",
]


def ask(
    say: Say, entailment: ScriptedEntailment | None = None, **options: object
) -> tuple[Run, Speaker, ScriptedRetriever]:
    reader, retriever = Speaker(say), ScriptedRetriever(FOUND)
    workflow = Workflow("self_ask", self_ask.build(**options), {})  # type: ignore[arg-type]
    deps = Deps(reader=reader, retriever=retriever, entailment=entailment)
    return run(workflow, QUESTION, deps), reader, retriever


def test_each_follow_up_is_searched_before_it_is_answered() -> None:
    result, reader, retriever = ask(script(CHAIN))
    assert result.status == "ok", result.error
    assert [s.name for s in result.steps] == ["retrieve", "ask"] * 3
    assert retriever.queries == [QUESTION.text, WHO, WHERE]
    assert [r.prompt.prefix for r in reader.requests] == [
        "Are follow up questions needed here:",
        f"Are follow up questions needed here: Yes.\nFollow up: {WHO}\nIntermediate answer:",
        f"Are follow up questions needed here: Yes.\nFollow up: {WHO}\nIntermediate answer: "
        f"Velora Tarn.\nFollow up: {WHERE}\nIntermediate answer:",
    ]
    assert (result.answer, result.stop_reason) == ("Miskel", "answer_marker")
    assert result.steps[-1].parse_ok is True


def test_contexts_are_appended_or_replaced() -> None:
    appended = ask(script(CHAIN))[1].requests
    assert [r.prompt.shown for r in appended] == [("3",), ("3", "1"), ("3", "1", "2")]
    replaced = ask(script(CHAIN), contexts="replace")[1].requests
    assert [r.prompt.shown for r in replaced] == [("3",), ("1",), ("2",)]


def test_a_simple_question_needs_no_follow_up() -> None:
    result, _, retriever = ask(script(["No.\nSo the final answer is: Miskel"]))
    assert retriever.queries == [QUESTION.text]
    assert result.answer == "Miskel"


@pytest.mark.parametrize(
    ("reply", "reason"), [("I do not know.", "parse_failure"), ("", "empty_generation")]
)
def test_without_a_marker_the_answer_is_empty(reply: str, reason: str) -> None:
    result, *_ = ask(script([reply]))
    assert (result.answer, result.stop_reason) == ("", reason)
    assert result.steps[-1].parse_ok is False


def test_it_ends_after_its_rounds_and_leaves_no_search_unread() -> None:
    result, reader, retriever = ask(lambda r: f"Hm.\nFollow up: {WHO}", rounds=6)
    assert len(reader.requests) == len(retriever.queries) == 6
    assert (result.answer, result.stop_reason) == ("", "max_steps")
    assert not any(step.dangling for step in result.steps)


PREMISES = ["Born: A film.", "Moon Harbor: Velora Tarn directed it."]
ALL = " ".join([*PREMISES, "Velora Tarn: She was born in Miskel."])
SUPPORTED = {
    (ALL, "Miskel"): ENTAILS,
    (PREMISES[1], "Velora Tarn."): Probabilities(0.3, 0.5, 0.2),
    ("Velora Tarn: She was born in Miskel.", "Miskel."): ENTAILS,
}


def test_supported_answers_stand() -> None:
    entailment = ScriptedEntailment(SUPPORTED)
    result, reader, _ = ask(script(CHAIN), entailment, back_off=True)
    assert result.status == "ok", result.error
    assert [s.name for s in result.steps][-2:] == ["ask", "verify"]
    assert result.steps[-1].output == "0.600"
    assert [s.question for s in entailment.calls[0]] == [QUESTION.text, WHO, WHERE]
    assert (result.answer, len(reader.requests)) == ("Miskel", 3)


@pytest.mark.parametrize("relation", [CONTRADICTS, NEUTRAL, Probabilities(0.5, 0, 0.5)])
def test_one_unsupported_answer_backs_off_to_the_closed_book(relation: Probabilities) -> None:
    entailment = ScriptedEntailment({**SUPPORTED, (PREMISES[1], "Velora Tarn."): relation})
    result, reader, _ = ask(script([*CHAIN, "Orla"]), entailment, back_off=True)
    assert [s.name for s in result.steps][-2:] == ["verify", "closed_book"]
    assert result.answer == "Orla"
    assert result.stop_reason == "answer_marker"
    assert reader.requests[-1].prompt.shown == ()
    assert task(reader.requests[-1]).startswith(f"Question: {QUESTION.text}")


def test_the_back_off_needs_an_entailment_model() -> None:
    result, *_ = ask(script(CHAIN), back_off=True)
    assert result.error is not None
    assert result.error.type == "EntailmentError"


@pytest.mark.parametrize(
    ("reply", "turn"),
    [
        (f"Yes.\nFollow up: {WHO}", (f"Yes.\nFollow up: {WHO}", "Yes.", WHO, None)),
        (f"Yes. Follow-up question: {WHO} Intermediate answer: X", (..., "Yes.", WHO, None)),
        ("Intermediate answer: A.\nFollow up: B?", ("A.\nFollow up: B?", "A.", "B?", None)),
        ("A\nFollow up: B?\nFollow up: C?", ("A\nFollow up: B?", "A", "B?", None)),
        ("so the final answer is X.\nFollow up: B?", (..., "", None, "X")),
        ("Follow up: B?\nSo the final answer is: X", ("Follow up: B?", "", "B?", None)),
        ("Follow up:\nB?", ("Follow up:\nB?", "Follow up:\nB?", None, None)),
        ("Are follow up questions needed here: No.", (..., ..., None, None)),
        ("So the final answer is:", (..., ..., None, None)),
        ("", ("", "", None, None)),
    ],
)
def test_a_turn_ends_with_its_first_follow_up_or_the_answer(
    reply: str, turn: tuple[object, ...]
) -> None:
    read = dialogue_form.read(reply)
    assert tuple(w if w is ... else g for g, w in zip(read, turn, strict=True)) == turn


PIECES = ["Follow up: ", "Intermediate answer:", "So the final answer is: ", "A?", " ", "\n", "."]


@given(st.lists(st.sampled_from(PIECES)))
def test_any_reply_is_a_turn_that_reads_the_same_when_kept(pieces: list[str]) -> None:
    turn = dialogue_form.read("".join(pieces))
    assert turn.follow_up is None or turn.answer is None
    assert turn.follow_up is None or (turn.follow_up and turn.text.endswith(turn.follow_up))
    assert "\n" not in (turn.follow_up or "") + (turn.answer or "")
    assert dialogue_form.read(turn.text).follow_up == turn.follow_up
