"""`hopscope.recording` and its decorators: what a program does becomes a run like any other."""

import asyncio
import contextvars
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

import hopscope
from tests.api.recording.shelf import GOLD, PASSAGES, QUESTION, look_up


@hopscope.retrieval
def search(query: str, k: int = 5) -> list[dict[str, str]]:
    return look_up(query)[:k]


@hopscope.retrieval(query="about", passages=lambda found: found["hits"], name="library")
async def search_async(k: int, about: str) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"hits": look_up(about)[:k]}


@hopscope.generation
def read(prompt: str) -> dict[str, Any]:
    """A chat completion as OpenAI's servers return it."""
    message = {"role": "assistant", "content": GOLD}
    usage = {"prompt_tokens": 40, "completion_tokens": 2}
    return {"choices": [{"message": message}], "usage": usage, "model": "small"}


@pytest.fixture(scope="module")
def store() -> Iterator[hopscope.Store]:
    with hopscope.Store.open("sqlite://") as opened:
        yield opened


def queries(run: hopscope.Run) -> list[str | None]:
    return [step.query for step in run.retrievals]


def test_a_recorded_program_is_a_run_with_passages_tokens_and_answer(store: hopscope.Store) -> None:
    with hopscope.recording(QUESTION, gold=GOLD, store=store, workflow="mine") as run:
        first = search("Elsa Wilby")
        second = search("Salwin Pictures", k=1)
        read("\n".join(each["text"] for each in second))
    stored = store.load(run.id)
    assert stored == run.record
    assert stored.question == hopscope.Question(text=QUESTION, answers=(GOLD,))
    assert (stored.workflow, stored.status, stored.answer) == ("recorded:mine", "ok", GOLD)
    assert stored.reader == "small"
    assert queries(stored) == ["Elsa Wilby", "Salwin Pictures"]
    assert [step.name for step in stored.steps] == ["search", "search", "read"]
    assert [hit.passage.text for hit in stored.steps[0].ranked] == [first[0]["text"]]
    assert stored.steps[2].shown == ("Salwin Pictures",)
    assert (stored.usage.input_tokens, stored.usage.output_tokens, stored.usage.calls) == (40, 2, 1)
    assert all(step.started >= stored.started for step in stored.steps)


def test_what_was_recorded_has_credit(store: hopscope.Store) -> None:
    """By the embedded reader, which the program has not used."""
    asked = "What company employs Elsa Wilby?"
    with hopscope.recording(asked, gold="Salwin Pictures", store=store) as run:
        search("Elsa Wilby")
        search("nobody")
        run.answer = "Salwin Pictures"
    with hopscope.Session(store=store) as session:
        rows = session.credit(run.id, meters=["seper"], rules=["shapley"], samples=4)
    values = [row.value for row in rows if row.rule == "shapley"]
    assert values == pytest.approx([1.0, 0.0, 0.0], abs=0.1)  # two searches and the answer
    assert len(store.run(run.id).credits) > 0


def test_an_exception_leaves_a_failed_run_and_goes_on(store: hopscope.Store) -> None:
    """A wrapper that swallowed it would hide the user's own errors."""
    run = hopscope.recording(QUESTION, store=store)
    with pytest.raises(ZeroDivisionError), run:
        print(1 / len(search("nobody")))
    stored = store.load(run.id)
    assert stored.status == "failed"
    assert stored.error is not None
    assert (stored.error.type, stored.error.message) == ("ZeroDivisionError", "division by zero")
    assert queries(stored) == ["nobody"]
    stopped = hopscope.recording(QUESTION, store=store)
    with pytest.raises(KeyboardInterrupt), stopped:
        raise KeyboardInterrupt
    assert store.load(stopped.id).status == "interrupted"


def test_a_search_that_fails_is_a_step_without_passages(store: hopscope.Store) -> None:
    @hopscope.retrieval
    def broken(query: str) -> list[str]:
        raise ConnectionError("no network")

    with hopscope.recording(QUESTION, store=store) as run:
        with pytest.raises(ConnectionError):
            broken("Elsa Wilby")
        run.answer = "unknown"
    [step] = store.load(run.id).retrievals
    assert (step.query, step.ranked) == ("Elsa Wilby", ())


def test_a_search_within_a_search_is_one(store: hopscope.Store) -> None:
    @hopscope.retrieval
    def both(query: str) -> list[dict[str, str]]:
        return [*search("Elsa Wilby"), *search("Salwin Pictures")]

    with hopscope.recording(QUESTION, store=store) as run:
        both("everything")
        run.answer = GOLD
    [step] = store.load(run.id).retrievals
    assert step.query == "everything"
    assert [hit.passage.key for hit in step.ranked] == [*PASSAGES]


def test_outside_any_recording_a_function_is_just_called() -> None:
    assert search("Elsa Wilby") == look_up("Elsa Wilby")
    assert asyncio.run(search_async(1, about="Elsa Wilby")) == {"hits": look_up("Elsa Wilby")}


def test_what_a_search_returns_is_never_changed(
    store: hopscope.Store, caplog: pytest.LogCaptureFixture
) -> None:
    """A recording that read an iterator to its end would leave nothing for the program."""

    @hopscope.retrieval
    def lazily(query: str) -> Iterator[dict[str, str]]:
        return iter(look_up(query))

    @hopscope.retrieval(passages=lambda found: found["missing"])
    def wrongly(query: str) -> dict[str, str]:
        return {}

    caplog.set_level(logging.WARNING)
    with hopscope.recording(QUESTION, store=store) as run:
        assert list(lazily("Elsa Wilby")) == look_up("Elsa Wilby")
        assert wrongly("Elsa Wilby") == {}
        run.answer = GOLD
    assert [step.ranked for step in store.load(run.id).retrievals] == [(), ()]
    assert "an iterator can be read once: return a list" in caplog.text
    assert "wrongly did not return passages: 'missing'" in caplog.text


def test_tasks_are_kept_apart(store: hopscope.Store) -> None:
    async def answer(title: str) -> hopscope.Recording:
        with hopscope.recording(f"What is {title}?", store=store) as run:
            found = await asyncio.gather(*(search_async(1, about=title) for _ in range(3)))
            run.answer = found[0]["hits"][0]["text"]
        return run

    async def main() -> list[hopscope.Recording]:
        return await asyncio.gather(*(answer(title) for title in PASSAGES))

    for title, run in zip(PASSAGES, asyncio.run(main()), strict=True):
        stored = store.load(run.id)
        assert queries(stored) == [title] * 3
        assert [step.name for step in stored.retrievals] == ["library"] * 3
        assert stored.answer == PASSAGES[title]


def test_a_thread_records_with_the_context_of_its_maker(store: hopscope.Store) -> None:
    with hopscope.recording(QUESTION, store=store) as run, ThreadPoolExecutor(2) as pool:
        handed = [contextvars.copy_context() for _ in PASSAGES]
        inside = [
            pool.submit(context.run, search, title)
            for context, title in zip(handed, PASSAGES, strict=True)
        ]
        outside = pool.submit(search, "Elsa Wilby")
        assert all(future.result() for future in (*inside, outside))
        run.answer = GOLD
    assert sorted(map(str, queries(store.load(run.id)))) == sorted(PASSAGES)


def test_what_comes_after_the_end_of_a_recording_is_no_part_of_it(store: hopscope.Store) -> None:
    with hopscope.recording(QUESTION, store=store) as run:
        context = contextvars.copy_context()
        run.answer = GOLD
    assert context.run(search, "Elsa Wilby") == look_up("Elsa Wilby")
    assert store.load(run.id).retrievals == ()


def test_replies_of_all_clients_are_read(store: hopscope.Store) -> None:
    anthropic = SimpleNamespace(
        model_dump=lambda: {
            "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
            "usage": {"input_tokens": 5, "output_tokens": 6},
            "model": "big",
        }
    )
    replies = iter(["plain", anthropic])

    @hopscope.generation(prompt="messages")
    async def ask(model: str, messages: list[dict[str, str]]) -> Any:
        return next(replies)

    with hopscope.recording(QUESTION, store=store) as run:
        search("Elsa Wilby")
        told = [{"role": "user", "content": f"{PASSAGES['Elsa Wilby']} {QUESTION}"}]
        asyncio.run(ask("any", told))
        asyncio.run(ask("any", [{"role": "user", "content": QUESTION}]))
        run.generation("three", input_tokens=1, output_tokens=2)
    stored = store.load(run.id)
    assert [step.output for step in stored.steps[1:]] == ["plain", "one\ntwo", "three"]
    assert [step.shown for step in stored.steps[1:3]] == [("Elsa Wilby",), ()]
    assert [step.usage.uncounted for step in stored.steps[1:]] == [1, 0, 0]
    assert stored.answer == "three"
    assert stored.reader == "big"


def test_an_experiment_of_recorded_runs_has_tables(store: hopscope.Store) -> None:
    for place in range(2):
        with hopscope.recording(f"{QUESTION} {place}", GOLD, store=store, experiment="live") as run:
            search("Elsa Wilby")
            run.answer = GOLD
    table = hopscope.compare("live", store=store, tables=["overview"])
    [row] = table.to_dicts("overview")
    assert row["system"] == "recorded:python"


def test_mistakes_are_told_at_once() -> None:
    with pytest.raises(hopscope.UsageError, match="the question is empty"):
        hopscope.recording(" ")
    with pytest.raises(hopscope.UsageError, match="give a text or a hopscope"):
        hopscope.recording(3)  # type: ignore[arg-type]
    with pytest.raises(hopscope.UsageError, match="store: give a file"):
        hopscope.recording(QUESTION, store=3)  # type: ignore[arg-type]
    with pytest.raises(hopscope.UsageError, match="no parameter 'subject': choose from query, k"):
        hopscope.retrieval(query="subject")(look_up_twice)
    with pytest.raises(hopscope.UsageError, match="yields what it finds"):

        @hopscope.retrieval
        def one_by_one(query: str) -> Iterator[str]:
            yield query


def look_up_twice(query: str, k: int) -> list[dict[str, str]]:
    return look_up(query) * k


class Model:
    """What a program may return: its class has `model_dump`, too."""

    def model_dump(self) -> dict[str, Any]:
        return {"content": "said", "tool_calls": 3}


def test_what_cannot_be_read_never_reaches_the_program(
    store: hopscope.Store, caplog: pytest.LogCaptureFixture
) -> None:
    circular: dict[str, Any] = {}
    circular["itself"] = circular
    given = [b"\xff", circular, Model, Model()]

    @hopscope.generation
    def reply(prompt: Any) -> Any:
        return prompt

    @hopscope.retrieval
    def find(query: Any) -> list[str]:
        return ["Elsa"]

    with hopscope.recording(QUESTION, store=store) as run:
        assert [reply(each) for each in given] == given
        assert find(b"\xff") == ["Elsa"]
        run.answer = "unknown"
    steps = store.load(run.id).steps
    assert [step.output for step in steps[:2]] == ["", ""]
    assert steps[3].output == "said"
    assert steps[4].query == ""
    assert "reply is recorded without its text: " in caplog.text
    assert "find is recorded without its text: " in caplog.text
