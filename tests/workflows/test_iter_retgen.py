"""Iter-RetGen's loop, on scripted replies."""

import pytest

from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Passage, Question, Run
from hopscope.workflows import iter_retgen
from tests.talk import ScriptedRetriever, Talker

HARBOR = Passage(id="1", title="Moon Harbor", text="Moon Harbor was directed by Velora Tarn.")
TARN = Passage(id="2", title="Velora Tarn", text="Velora Tarn was born in Miskel.")
QUESTION = Question(text="Where was the director of Moon Harbor born?", answers=("Miskel",))


def found(query: str) -> list[Passage]:
    return [TARN] if "Velora" in query else [HARBOR]


def ask(replies: list[str], **options: object) -> tuple[Run, Talker, ScriptedRetriever]:
    reader, retriever = Talker(replies), ScriptedRetriever(found)
    workflow = Workflow("iter_retgen", iter_retgen.build(**options), {})  # type: ignore[arg-type]
    return run(workflow, QUESTION, Deps(reader=reader, retriever=retriever)), reader, retriever


def test_each_answer_extends_the_next_query() -> None:
    result, reader, retriever = ask(["Velora Tarn", "Miskel", "Miskel!"])
    assert result.status == "ok", result.error
    assert retriever.queries == [
        QUESTION.text,
        f"{QUESTION.text} Velora Tarn",
        f"{QUESTION.text} Miskel",
    ]
    assert [s.name for s in result.steps] == ["retrieve", "generate"] * 3
    assert result.answer == "Miskel!"
    assert result.stop_reason == "max_steps"
    assert len(reader.requests) == 3


def test_paragraphs_are_replaced_and_the_answer_stays_out_of_the_prompt() -> None:
    result, reader, _ = ask(["Velora Tarn", "Miskel", "Miskel"])
    assert [r.prompt.shown for r in reader.requests] == [("1",), ("2",), ("1",)]
    assert [s.new for s in result.steps if s.name == "retrieve"] == [("1",), ("2",), ()]
    assert "Miskel" not in reader.requests[2].prompt.messages[-1].content
    assert {r.prompt.prefix for r in reader.requests} == {""}


def test_after_an_empty_answer_the_question_is_searched_again() -> None:
    result, _, retriever = ask(["", " ", "Miskel"])
    assert retriever.queries == [QUESTION.text] * 3
    assert result.answer == "Miskel"


def test_it_can_stop_when_the_answer_repeats_up_to_normalisation() -> None:
    result, reader, _ = ask(["Miskel", "The Miskel."], iterations=9, stop_when_stable=True)
    assert result.stop_reason == "answer_stable"
    assert len(reader.requests) == 2
    assert result.answer == "The Miskel."


def test_a_first_answer_that_is_empty_repeats_nothing() -> None:
    result, reader, _ = ask(["", "Miskel", "Miskel"], stop_when_stable=True)
    assert result.stop_reason == "answer_stable"
    assert len(reader.requests) == 3


def test_one_iteration_is_naive_rag() -> None:
    result, reader, _ = ask(["Miskel"], iterations=1, stop_when_stable=True)
    assert [s.name for s in result.steps] == ["retrieve", "generate"]
    assert result.stop_reason == "max_steps"
    assert len(reader.requests) == 1


@pytest.mark.parametrize(
    ("last", "answer", "parsed"),
    [("He is there. So the answer is: Miskel.", "Miskel", True), ("In Miskel", "In Miskel", False)],
)
def test_reasoning_is_the_next_query_and_holds_the_answer(
    last: str, answer: str, parsed: bool
) -> None:
    chain = "Velora Tarn made it. So the answer is: unknown."
    result, reader, retriever = ask([chain, last], iterations=2, output="reasoning", max_tokens=300)
    assert retriever.queries[1] == f"{QUESTION.text} {chain}"
    assert (result.answer, result.steps[-1].parse_ok) == (answer, parsed)
    assert reader.requests[0].max_tokens == 300
