"""A session does from Python what the command line does, with names and with the parts
themselves."""

import asyncio
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

import hopscope
from hopscope.api.appraiser import Appraiser
from hopscope.runtime.errors import StoreError, UsageError
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import Hit, Passage, Question
from hopscope.store.experiments.records import Progress
from hopscope.store.store import Store as RecordStore

QUESTION = "What is the headquarters city of the company that employs Elsa Wilby?"
GOLD = "Grand Rovmar"
TEXTS = ["Elsa Wilby is employed by Salwin Pictures.", "Salwin Pictures is in Grand Rovmar."]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[hopscope.Session]:
    with hopscope.Session(store=tmp_path / "runs.db", samples=4) as opened:
        yield opened


def test_a_run_is_answered_measured_and_stored(session: hopscope.Session) -> None:
    run = session.ask(QUESTION, gold=GOLD)
    assert (run.answer, run.status, run.error, run.problems) == (GOLD, "ok", None, ())
    shares = {
        row.step: row.value
        for row in run.credits
        if (row.meter, row.rule, row.passage) == ("seper", "shapley", None)
    }
    [total] = [row for row in run.credits if (row.meter, row.rule) == ("seper", "total")]
    assert total.value is not None
    assert sum(value or 0 for value in shares.values()) == pytest.approx(total.value)
    assert isinstance(session.store, hopscope.Store)
    stored = session.store.run(run.id[:8])
    assert stored.record == run.record
    assert sorted(stored.credits.to_dicts(), key=repr) == sorted(run.credits.to_dicts(), key=repr)
    assert session.store.run().id == run.id


def test_the_command_and_the_session_give_the_same(
    session: hopscope.Session, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "hopscope.cli", "run", QUESTION, "--gold", GOLD, "--json"]
    places = ["--samples", "4", "--db", str(tmp_path / "other.db")]
    done = subprocess.run([*command, *places], capture_output=True, text=True, check=True)
    printed, own = json.loads(done.stdout), session.ask(QUESTION, gold=GOLD).to_dict()

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: timeless(each)
                for key, each in value.items()
                if key not in ("id", "seconds", "measured")
            }
        return [timeless(each) for each in value] if isinstance(value, list) else value

    assert timeless(printed) == timeless(own)


def test_show_prints_the_table_of_the_command(
    session: hopscope.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    run = session.ask(QUESTION, gold=GOLD)
    run.show()
    assert "ΔSePer" in capsys.readouterr().out
    run.credits.show()
    assert "shapley" in capsys.readouterr().out


def test_a_function_is_a_retriever(session: hopscope.Session) -> None:
    asked: list[tuple[str, int]] = []

    def find(query: str, k: int) -> list[str]:
        asked.append((query, k))
        return TEXTS

    with hopscope.Session(retriever=find, store=session.store, samples=2) as own:
        run = own.ask(QUESTION, gold=GOLD, k=2)
        assert own.retrieve("Elsa", k=1)[0].passage.text == TEXTS[0]
    assert run.record.retriever.startswith("callable:")
    assert asked[0][1] == 2
    assert session.store.load(run.id) == run.record  # a store that was given stays open


def test_a_retriever_port_and_a_reader_port_stand_for_themselves() -> None:
    class Shelf:
        name = "shelf"

        def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
            return [[Hit(passage=Passage(text=text), score=1) for text in TEXTS] for _ in queries]

    reader = tiny.build()
    with hopscope.Session(reader=reader, retriever=Shelf(), store="sqlite://", meters=[]) as own:
        run = own.ask(QUESTION)
        assert own.reader is reader
    assert (run.record.reader, run.record.retriever) == (reader.name, "shelf")
    assert len(run.credits) == 0


def test_a_graph_is_a_workflow(session: hopscope.Session) -> None:
    class State(TypedDict, total=False):
        question: str
        documents: list[str]
        answer: str

    graph = StateGraph(State)
    graph.add_node("find", lambda state: {"documents": TEXTS})
    graph.add_node("tell", lambda state: {"answer": GOLD})
    graph.add_edge(START, "find")
    graph.add_edge("find", "tell")
    graph.add_edge("tell", END)
    run = session.ask(QUESTION, gold=GOLD, workflow=graph.compile(name="mine"))
    assert (run.answer, run.workflow) == (GOLD, "graph:mine")
    assert [step.kind for step in run.steps][:1] == ["retrieve"]


def test_a_model_in_memory_is_a_reader(tmp_path: Path) -> None:
    from tests.models import tiny_llama

    transformers = pytest.importorskip("transformers")
    folder = tiny_llama(tmp_path / "model")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    parts = {"retriever": lambda query: TEXTS, "store": "sqlite://", "meters": []}
    with hopscope.Session(reader=(model, tokenizer), **parts) as own:
        run = own.ask(QUESTION, workflow="naive")
    assert run.status == "ok"
    assert "@loaded" in run.record.reader


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"reader": object()}, "reader: object has no generate"),
        ({"reader": ("model", "tokenizer", 3)}, "pair"),
        ({"entailment": object()}, "entailment: object has no classify"),
        ({"policy": object()}, "policy: object has no decide"),
        ({"retriever": 5}, "no retriever"),
        ({"workflow": 5}, "workflow"),
        ({"workflow": "ircott"}, "choose from"),
        ({"options": {"kk": 3}}, "unknown option 'kk'"),
        ({"meters": ["sepper"]}, "no 'sepper' among"),
    ],
)
def test_what_is_no_part_is_refused(parts: dict[str, Any], told: str) -> None:
    with (
        hopscope.Session(**{"store": "sqlite://", **parts}) as own,
        pytest.raises(UsageError, match=told),
    ):
        own.ask(QUESTION)


def test_a_run_that_fails_is_given_back_and_stored(session: hopscope.Session) -> None:
    def broken(query: str, k: int) -> list[str]:
        raise RuntimeError("no network")

    with hopscope.Session(retriever=broken, store=session.store) as own:
        run = own.ask(QUESTION)
    assert run.status == "failed"
    assert run.error is not None
    assert "no network" in run.error.message
    assert "no network" in repr(run)
    assert session.store.load(run.id) == run.record


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_part_that_exits_leaves_a_stored_run_and_the_exit_goes_on(
    session: hopscope.Session, asynchronous: bool
) -> None:
    """The run was lost; and an exit in a coroutine ended the event loop, for which `ask` waited."""

    def leave(query: str, k: int) -> list[str]:
        sys.exit(3)

    async def leave_later(query: str, k: int) -> list[str]:
        sys.exit(3)

    retriever = leave_later if asynchronous else leave
    with hopscope.Session(retriever=retriever, store=session.store) as own:
        with pytest.raises(SystemExit) as stop:
            own.ask(QUESTION)
        assert stop.value.code == 3
        [stored] = session.store.runs()
        assert stored.status == "failed"
        error = session.store.load(stored.id).error
        assert error is not None
        assert (error.type, error.message) == ("SystemExit", "a part called sys.exit(3)")
        with pytest.raises(SystemExit):
            own.ask(QUESTION)


def test_an_exit_fails_one_item_of_an_experiment(session: hopscope.Session) -> None:
    def leave(query: str, k: int) -> list[str]:
        if "Elsa" in query:
            sys.exit(3)
        return TEXTS

    questions = [hopscope.Question(text=QUESTION), hopscope.Question(text="Who is it?")]
    with hopscope.Session(retriever=leave, store=session.store, meters=[]) as own:
        done = hopscope.evaluate(own, questions, workflows=["naive"], name="exits")
    assert (done.progress.ok, done.progress.failed) == (1, 1)
    assert {run.status for run in done.runs()} == {"ok", "failed"}


def test_a_run_that_cannot_be_stored_is_given_back(
    session: hopscope.Session,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(RecordStore, "save", full)
    with caplog.at_level(logging.WARNING):
        run = session.ask(QUESTION, gold=GOLD)
    assert run.problems == ("the run is not stored: the disk is full",)
    assert run.answer == GOLD
    assert len(run.credits) > 0
    assert "the disk is full" in caplog.text


def test_ctrl_c_leaves_a_stored_run_and_is_raised(session: hopscope.Session) -> None:
    def stop(query: str, k: int) -> list[str]:
        raise KeyboardInterrupt

    with (
        hopscope.Session(retriever=stop, store=session.store) as own,
        pytest.raises(hopscope.Interrupted) as stopped,
    ):
        own.ask(QUESTION)
    assert stopped.value.run.status == "interrupted"
    assert session.store.load(stopped.value.run.id).status == "interrupted"
    assert isinstance(stopped.value, KeyboardInterrupt)


def test_ctrl_c_while_measuring_leaves_the_answer(
    session: hopscope.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Appraiser, "appraise", stop)
    with pytest.raises(hopscope.Interrupted) as stopped:
        session.ask(QUESTION, gold=GOLD)
    assert stopped.value.run.answer == GOLD
    assert session.store.load(stopped.value.run.id).status == "ok"


def test_many_questions_are_asked_when_their_runs_are_wanted(session: hopscope.Session) -> None:
    taken: list[int] = []

    def questions() -> Iterator[Question]:
        for number in range(2):
            taken.append(number)
            yield Question(text=QUESTION, answers=(GOLD,), id=str(number))

    runs = session.ask_many(questions())
    assert taken == []
    first = next(runs)
    assert (taken, first.question.id, first.answer) == ([0], "0", GOLD)
    assert [run.question.id for run in runs] == ["1"]


def test_ask_works_in_a_running_loop_and_its_twin_leaves_it_running() -> None:
    async def find(query: str, k: int) -> list[str]:
        await asyncio.sleep(0)
        return TEXTS

    async def main() -> tuple[list[str | None], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        with hopscope.Session(retriever=find, store="sqlite://", meters=[]) as own:
            here = own.ask(QUESTION, workflow="naive")
            ticking = asyncio.create_task(tick())
            await asyncio.sleep(0)
            before = ticks
            both = await asyncio.gather(
                own.ask_async(QUESTION, workflow="naive"), own.ask_async(QUESTION, workflow="naive")
            )
            ticking.cancel()
        return [run.answer for run in (here, *both)], ticks - before

    answers, ticks = asyncio.run(main())
    assert len(set(answers)) == 1
    assert answers[0]
    assert ticks > 0


def test_an_evaluation_leaves_the_loop_running_and_ends_when_cancelled(
    session: hopscope.Session,
) -> None:
    """A cancelled evaluation went on with all its questions in a thread that nobody could stop."""
    began, go_on = threading.Event(), threading.Event()

    def find(query: str, k: int) -> list[str]:
        began.set()
        go_on.wait(60)
        return TEXTS

    questions = [hopscope.Question(text=f"Who is number {number}?") for number in range(5)]

    async def main(own: hopscope.Session) -> hopscope.Experiment:
        async def evaluated() -> hopscope.Experiment:
            return await hopscope.evaluate_async(own, questions, workflows=["naive"], name="five")

        first = asyncio.create_task(evaluated())
        while not began.is_set():
            await asyncio.sleep(0.001)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        go_on.set()
        # The first holds the session until what has begun is kept.
        while (held := await asyncio.to_thread(progress, own)).done == 0:
            pass
        assert held.done == 1
        return await evaluated()

    def progress(own: hopscope.Session) -> Progress:
        with own.turn:
            return own.store.experiments.progress("five")

    with hopscope.Session(retriever=find, store=session.store, meters=[]) as own:
        assert asyncio.run(main(own)).progress.ok == 5


def test_credit_shares_a_stored_run_in_another_way(session: hopscope.Session) -> None:
    run = session.ask(QUESTION, gold=GOLD)
    rows = session.credit(run.id[:6], over="passages", rules=["shapley"], meters=["seper"])
    assert {row.rule for row in rows} == {"shapley", "leave_one_out"}
    assert any(row.title == "Elsa Wilby" for row in rows if row.passage)
    assert {c.rule for c in session.store.credits(run.id) if c.passage} == {"shapley"}
    other = session.credit(run, rules=["shapley"], counterfactual="random", gold="Lower Horwin")
    assert {row.appraisal for row in other} != {row.appraisal for row in rows}
    with pytest.raises(UsageError, match="mode='thawed': choose from frozen, replay"):
        session.credit(run, mode="thawed")


def test_a_checkpoint_goes_on_and_wants_names(session: hopscope.Session, tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    first = session.ask(QUESTION, gold=GOLD, checkpoint=file)
    again = session.ask(QUESTION, gold=GOLD, checkpoint=file, run_id=first.id)
    assert again.record.steps == first.record.steps
    with (
        hopscope.Session(retriever=lambda query: TEXTS, store="sqlite://") as own,
        pytest.raises(UsageError, match="checkpoint: it stores names"),
    ):
        own.ask(QUESTION, checkpoint=tmp_path / "other.db")


def test_options_are_plain_values(session: hopscope.Session) -> None:
    run = session.ask(QUESTION, options={"k": 2, "seper.weight": "uniform"}, gold=GOLD)
    assert run.record.options["k"] == 2
    assert {credit.provenance.settings.get("seper.weight") for credit in run.credits.records} == {
        "uniform"
    }


def test_a_limit_below_0_is_told_in_plain_words() -> None:
    with pytest.raises(UsageError, match=r"^Limits: retrievals: give 0 or more$"):
        hopscope.Limits(retrievals=-1)


def test_a_store_in_a_missing_folder_names_it(tmp_path: Path) -> None:
    """A mistyped path made a new folder with an empty database."""
    with pytest.raises(UsageError, match=r"there is no folder .*mistyped; make it, or"):
        hopscope.Store.open(tmp_path / "mistyped" / "runs.db")
    assert not (tmp_path / "mistyped").exists()


def test_a_limit_holds(session: hopscope.Session) -> None:
    limited = hopscope.Session(store=session.store, limits=hopscope.Limits(retrievals=1), meters=[])
    run = limited.ask(QUESTION)
    assert run.stop_reason == "budget_retrievals"


def test_a_database_in_memory_is_one_for_all_threads() -> None:
    """`ask_async` stored its run where `ask` did not find it: each thread had a database."""
    with hopscope.Session(store="sqlite://", meters=[]) as session:
        awaited = asyncio.run(session.ask_async(QUESTION, workflow="closed_book"))
        here = session.ask(QUESTION, workflow="closed_book")
        assert (awaited.problems, here.problems) == ((), ())
        assert {row.id for row in session.store.runs()} == {awaited.id, here.id}


def test_arguments_of_a_wrong_type_are_told(session: hopscope.Session) -> None:
    wrong: Any = 5
    with pytest.raises(UsageError, match=r"question: give a text or a hopscope\.Question, not 5"):
        session.ask(wrong)
    with pytest.raises(UsageError, match="gold: give the right answer, or a list"):
        session.ask(QUESTION, gold=wrong)
    with pytest.raises(UsageError, match="store: give a file, a URL or an open"):
        hopscope.Session(store=wrong)
    with pytest.raises(UsageError, match="give a list of names, not 5"):
        hopscope.Session(meters=wrong)
    with pytest.raises(UsageError, match="for one question use ask"):
        next(session.ask_many("Who?"))
    with pytest.raises(UsageError, match=r"limits: give hopscope\.Limits"):
        hopscope.Session(limits=wrong)
    with pytest.raises(UsageError, match="options: give names with values"):
        session.ask(QUESTION, options=wrong)
    with pytest.raises(UsageError, match="run: give a run or the id of a stored one, not 5"):
        session.credit(wrong)
    assert hopscope.Session(meters="grogu").meters == ("grogu",)


def test_options_stand_with_a_workflow_s_name_as_on_the_command_line() -> None:
    with hopscope.Session(store="sqlite://", meters=[], options={"k": 4}) as session:
        assert session.ask(QUESTION, workflow="naive:k=2").record.options["k"] == 2
        assert session.ask(QUESTION, workflow="naive:k=2", k=3).record.options["k"] == 3
        with pytest.raises(UsageError, match="give the policy to the session"):
            session.ask(QUESTION, workflow="naive:policy=never")


def test_an_evaluation_of_no_question_is_refused(session: hopscope.Session) -> None:
    """A limit of -1 asked all questions of the dataset."""
    for option in ("limit", "threads"):
        number: Any = {option: -1}
        with pytest.raises(UsageError, match=f"{option}: give a number of at least 1, not -1"):
            hopscope.evaluate(session, "hopland:dev", **number)
    with pytest.raises(UsageError, match="workflows: name at least one"):
        hopscope.evaluate(session, "hopland:dev", workflows=[])


def test_an_experiment_of_texts_is_refused_in_words(session: hopscope.Session) -> None:
    """Pydantic's own error told of a dictionary."""
    texts: Any = ["Who?"]
    with pytest.raises(UsageError, match=r"data: entry 1 is of type str: give records"):
        hopscope.evaluate(session, texts, name="texts")
