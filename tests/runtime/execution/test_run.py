"""`run()` as the one capture point, and what the step seam records."""

from collections.abc import Sequence

import pytest

from hopscope.runtime.errors import ContextOverflowError, ReaderError, UsageError
from hopscope.runtime.execution.run import Run, Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Generation, GenerationRequest, Passage, Question
from hopscope.workflows import closed_book, ircot, naive
from tests.talk import Reply, ScriptedRetriever, Talker

PASSAGES = [Passage(id=str(i), title=f"T{i}", text=f"text {i}") for i in range(3)]
QUESTION = Question(text="Who is it?", answers=("A",))


def ask(module: object, replies: list[Reply], **options: object) -> Run:
    deps = Deps(reader=Talker(replies), retriever=ScriptedRetriever(lambda _: PASSAGES))
    workflow = Workflow("w", module.build(**options), {"k": 2})  # type: ignore[attr-defined]
    return run(workflow, QUESTION, deps)


def test_a_failed_run_keeps_the_steps_it_took() -> None:
    result = ask(ircot, ["First thought.", ReaderError("out of memory")])
    assert result.status == "failed"
    assert result.error is not None
    assert (result.error.type, result.error.message) == ("ReaderError", "out of memory")
    assert [s.name for s in result.steps] == ["retrieve", "reason", "retrieve"]
    assert result.answer is None


def test_an_interrupted_run_keeps_the_steps_it_took_and_says_so() -> None:
    class Stopping(Talker):
        def generate(self, requests):  # type: ignore[no-untyped-def]
            raise KeyboardInterrupt

    deps = Deps(reader=Stopping([]), retriever=ScriptedRetriever(lambda _: PASSAGES))
    result = run(Workflow("naive", naive.build(), {}), QUESTION, deps)
    assert result.status == "interrupted"
    assert [s.name for s in result.steps] == ["retrieve"]


def test_an_unknown_exception_of_a_node_is_data_too() -> None:
    result = ask(naive, [ZeroDivisionError("1/0")])
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.type == "ZeroDivisionError"


def test_a_step_records_what_was_asked_found_shown_and_spent() -> None:
    result = ask(naive, [" the answer "], k=2)
    retrieve, answer = result.steps
    assert retrieve.query == QUESTION.text
    assert [h.passage.id for h in retrieve.ranked] == ["0", "1"]
    assert retrieve.new == ("0", "1")
    assert retrieve.shown == ()
    assert answer.shown == ("0", "1")
    assert answer.new == ()
    assert answer.output == " the answer "
    assert answer.usage.calls == 1
    assert result.usage == answer.usage
    assert result.answer == "the answer"
    assert [s.index for s in result.steps] == [0, 1]


def test_what_was_retrieved_but_never_shown_is_dangling() -> None:
    result = ask(naive, [ReaderError("down")], k=2)
    assert result.steps[0].dangling == ("0", "1")
    assert ask(naive, ["a"], k=2).steps[0].dangling == ()


def test_closed_book_retrieves_nothing() -> None:
    result = ask(closed_book, ["A"])
    assert [s.kind for s in result.steps] == ["generate"]
    assert result.evidence == ()


def test_an_empty_question_is_refused() -> None:
    deps = Deps(reader=Talker([]), retriever=ScriptedRetriever({}))
    with pytest.raises(UsageError, match="question is empty"):
        run(Workflow("naive", naive.build(), {}), Question(text=" \n"), deps)


def test_a_run_survives_json() -> None:
    result = ask(naive, ["a"], k=2)
    assert Run.model_validate_json(result.model_dump_json()) == result


def test_what_does_not_fit_the_reader_is_left_out_from_the_end() -> None:
    class Narrow(Talker):
        def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
            if len(requests[0].prompt.shown) > 1:
                raise ContextOverflowError("narrow", tokens=900, reserved=32, context=512)
            return super().generate(requests)

    deps = Deps(reader=Narrow(["a"]), retriever=ScriptedRetriever(lambda _: PASSAGES))
    result = run(Workflow("naive", naive.build(), {}), QUESTION, deps)
    assert result.status == "ok", result.error
    assert result.steps[1].shown == ("0",)
    assert result.steps[0].dangling == ("1", "2")
