"""Experiments: one row for each question by each arm, done once, read in bulk."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from hopscope.runtime.errors import StoreError, UsageError
from hopscope.runtime.types import Appraisal, Question, Run, RunError, Usage
from hopscope.store.database.schema import sittings
from hopscope.store.experiments.records import Arm, ClaimedItem, DatasetEntry, Experiment
from hopscope.store.store import Store
from tests.store.run_examples import PROVENANCE, STARTED, a_run, counts, credits_of

NAIVE = Arm(label="naive", workflow="naive", settings={"options": {"k": 5}})
IRCOT = Arm(label="ircot:k=3", workflow="ircot", settings={"options": {"k": 3}})


def entry(number: int, *, id: str = "") -> DatasetEntry:
    return DatasetEntry(
        question=Question(text=f"Who founded town {number}?", answers=("people", "they"), id=id),
        kind="bridge",
        hops=2,
        supporting=("Town 1", "Town 2"),
    )


def an_experiment(*arms: Arm, fingerprint: str = "f", name: str = "towns") -> Experiment:
    return Experiment(
        name=name,
        settings={"data": "towns.jsonl", "samples": 10},
        reader="tiny@1",
        retriever="bm25@1f3a",
        entailment="lexical",
        seed=2**70,
        fingerprint=fingerprint,
        created=STARTED,
        arms=arms or (NAIVE, IRCOT),
    )


def planned(store: Store, questions: int = 2, *arms: Arm) -> int:
    """An experiment in the store; the number of a session at it."""
    store.experiments.add(an_experiment(*arms), [entry(i) for i in range(questions)])
    return sit(store)


def sit(store: Store) -> int:
    return store.experiments.begin_session("towns", owner="here/1", environment={"python": "3"})


def the_run(claimed: ClaimedItem) -> Run:
    return a_run(f"run-{claimed.position}", hops=1).model_copy(
        update={"question": claimed.entry.question, "workflow": claimed.arm.workflow}
    )


def appraisal_of(run: Run, *, minute: int = 0) -> Appraisal:
    return Appraisal(
        run_id=run.id,
        provenance=PROVENANCE,
        measured=STARTED + timedelta(minutes=minute),
        usage=Usage(input_tokens=9, output_tokens=1, calls=2),
        seconds=0.5,
    )


def do(store: Store, session: int, claimed: Sequence[ClaimedItem]) -> list[bool]:
    done = []
    for each in claimed:
        run = the_run(each)
        credits, appraisals = credits_of(run), [appraisal_of(run)]
        done.append(
            store.experiments.complete(session, each, run, credits=credits, appraisals=appraisals)
        )
    return done


def test_what_was_planned_comes_back(store: Store) -> None:
    planned(store, 2)
    assert store.experiments.all() == [an_experiment()]
    assert store.experiments.find("towns") == an_experiment()
    items = store.experiments.items("towns")
    assert [(i.question.text[-2], i.arm, i.workflow, i.position) for i in items] == [
        ("0", "naive", "naive", 0),
        ("0", "ircot:k=3", "ircot", 1),
        ("1", "naive", "naive", 2),
        ("1", "ircot:k=3", "ircot", 3),
    ]
    assert {(i.status, i.attempts, i.error, i.outcome) for i in items} == {
        ("pending", 0, None, None)
    }
    assert items[0].entry == entry(0)
    [session] = store.experiments.worker_sessions("towns")
    assert (session.owner, session.environment, session.ended) == ("here/1", {"python": "3"}, None)
    assert store.verify() == []


def test_an_item_that_is_done_has_the_figures_of_its_run(store: Store) -> None:
    session = planned(store, 1)
    claimed = store.experiments.claim(session)
    assert [(c.entry, c.arm) for c in claimed] == [(entry(0), NAIVE)]
    assert do(store, session, claimed) == [True]
    item, other = store.experiments.items("towns")
    run = the_run(claimed[0])
    assert item.status == "ok"
    assert item.outcome is not None
    assert item.outcome.run_id == run.id
    assert item.outcome.usage == run.usage == Usage(input_tokens=400, output_tokens=12, calls=1)
    assert (item.outcome.steps, item.outcome.retrievals) == (2, 1)
    assert (item.outcome.answer, item.outcome.started) == (run.answer, run.started)
    assert other.outcome is None
    assert store.load(run.id) == run
    assert store.experiments.items("towns", status="ok") == [item]
    progress = store.experiments.progress("towns")
    assert (progress.ok, progress.pending, progress.done, progress.total) == (1, 1, 1, 2)


def test_credits_and_appraisals_come_in_bulk_as_they_do_one_by_one(store: Store) -> None:
    session = planned(store, 2, NAIVE)
    do(store, session, store.experiments.claim(session, 5))
    again = PROVENANCE.model_copy(update={"seed": 8})
    run = store.load("run-0")
    store.save_credits(
        [c.model_copy(update={"provenance": again}) for c in credits_of(run)],
        [appraisal_of(run, minute=-5).model_copy(update={"provenance": again})],
    )
    store.save(a_run("of no experiment"))
    store.save_credits(credits_of(a_run("of no experiment")))
    credits, appraisals = store.experiments.credits("towns"), store.experiments.appraisals("towns")
    assert credits == {name: store.credits(name) for name in ("run-0", "run-1")}
    assert credits["run-0"][0].provenance.seed == 8, "measured first"
    assert appraisals == {name: store.appraisals(name) for name in ("run-0", "run-1")}
    shapley = store.experiments.credits("towns", rules=["shapley"], meters=["seper"])
    assert {c.rule for found in shapley.values() for c in found} == {"shapley"}
    assert store.experiments.credits("towns", meters=["grogu"]) == {}


def test_credits_of_passages_can_be_left_out(store: Store) -> None:
    session = planned(store, 1, NAIVE)
    [claimed] = store.experiments.claim(session)
    run = the_run(claimed)
    whole = credits_of(run)
    single = whole[1].model_copy(update={"passage": "p1"})
    store.experiments.complete(session, claimed, run, credits=[*whole, single])
    assert single in store.experiments.credits("towns")[run.id]
    assert single not in store.experiments.credits("towns", passages=False)[run.id]
    assert len(store.experiments.credits("towns", passages=False)[run.id]) == len(whole)


def test_planning_again_adds_what_is_new_and_doubles_nothing(store: Store) -> None:
    session = planned(store, 1, NAIVE)
    do(store, session, store.experiments.claim(session))
    more = [entry(0), entry(1), entry(0), entry(0, id="q0")]
    store.experiments.add(an_experiment(IRCOT, NAIVE), more)
    items = store.experiments.items("towns")
    assert [i.position for i in items] == list(range(6))
    assert len({(i.entry.hash, i.arm) for i in items}) == 6
    assert [i.status for i in items] == ["ok"] + ["pending"] * 5
    assert store.experiments.find("towns").arms == (NAIVE, IRCOT)


def test_a_refusal_names_what_differs_of_long_settings() -> None:
    def with_prices(input: float) -> Arm:
        models = {f"model-{n}": {"input": 1.0, "output": 2.0, "cached": None} for n in range(99)}
        models["model-7"]["input"] = input
        return NAIVE.model_copy(update={"settings": {"limits": {"prices": {"models": models}}}})

    with pytest.raises(UsageError) as error:
        with_prices(1.0).check(with_prices(3.0))
    assert (
        "began with prices {'models': {'model-7': {'input': 1.0}}} and cannot continue with "
        "prices {'models': {'model-7': {'input': 3.0}}}: give" in str(error.value)
    )
    with pytest.raises(UsageError, match=r"and cannot continue with .*no prices") as error:
        with_prices(1.0).check(NAIVE)
    assert len(str(error.value)) < 600


def test_what_was_begun_otherwise_is_refused(store: Store) -> None:
    planned(store, 1)
    with pytest.raises(UsageError, match="began with other settings"):
        store.experiments.add(an_experiment(fingerprint="g"), [])
    other = NAIVE.model_copy(update={"settings": {"options": {"k": 9}}})
    with pytest.raises(UsageError, match=r"naive began with .*5.*naive:OPTION"):
        store.experiments.add(an_experiment(other), [entry(7)])
    assert len(store.experiments.items("towns")) == 2
    with pytest.raises(UsageError, match=r"no experiment 'cities' .*there are towns"):
        store.experiments.items("cities")


def test_a_failed_item_is_a_row_with_its_error_and_can_be_tried_again(store: Store) -> None:
    session = planned(store, 1)
    bare, with_run = store.experiments.claim(session, 2)
    error = RunError(type="ReaderError", message="too \x00 long")
    assert store.experiments.complete(session, bare, None, error=error)
    failed = the_run(with_run).model_copy(update={"status": "failed", "error": error})
    assert store.experiments.complete(session, with_run, failed, error=error)
    first, second = store.experiments.items("towns", status="failed")
    assert (first.error, first.outcome) == (error, None)
    assert second.outcome is not None
    assert second.outcome.status == "failed"
    assert store.experiments.claim(session, 9) == []
    assert store.experiments.retry_failed("towns") == 2
    again = store.experiments.claim(session, 9)
    assert [c.position for c in again] == [0, 1]
    do(store, session, again)
    items = store.experiments.items("towns")
    assert [(i.status, i.attempts, i.error) for i in items] == [("ok", 2, None)] * 2
    assert counts(store)["runs"] == 2


def test_what_a_dead_session_held_is_free_and_it_can_write_no_more(store: Store) -> None:
    """Its process may have been taken for dead and live on."""
    dead = planned(store, 1)
    held = store.experiments.claim(dead, 1)
    living = sit(store)
    assert [c.position for c in store.experiments.claim(living, 9)] == [1]
    assert store.experiments.open_sessions("towns") == {dead: "here/1", living: "here/1"}
    store.experiments.end_session(dead)
    [again] = store.experiments.claim(living, 9)
    assert again.position == held[0].position
    assert do(store, dead, held) == [False]
    assert counts(store)["runs"] == 0
    assert do(store, living, [again]) == [True]
    assert do(store, living, [again]) == [False], "once is enough"
    assert counts(store)["runs"] == 1


def test_a_silent_session_is_taken_for_dead(store: Store) -> None:
    silent = planned(store, 1)
    store.experiments.claim(silent, 1)
    living = sit(store)
    past = datetime.now(UTC) - timedelta(seconds=91)
    with store._database.writing() as connection:
        connection.execute(update(sittings).where(sittings.c.number == silent).values(seen=past))
    assert [c.position for c in store.experiments.claim(living, 9)] == [0, 1]
    store.experiments.keep_alive(silent)
    with pytest.raises(StoreError, match="no worker session 999"):
        store.experiments.keep_alive(999)


def test_nothing_of_an_item_is_kept_when_a_part_cannot_be(store: Store) -> None:
    """One transaction: a run without its credits would count as done."""
    session = planned(store, 1)
    [claimed] = store.experiments.claim(session)
    run = the_run(claimed)
    strange = credits_of(run)[0].model_copy(update={"run_id": "another"})
    with pytest.raises(KeyError):
        store.experiments.complete(session, claimed, run, credits=[strange])
    assert counts(store)["runs"] == 0
    assert store.experiments.progress("towns").running == 1


def test_many_at_once_do_everything_once(store: Store) -> None:
    planned(store, 30)

    def work(_: int) -> list[bool]:
        session, done = sit(store), []
        while claimed := store.experiments.claim(session, 3):
            done += do(store, session, claimed)
        return done

    with ThreadPoolExecutor(4) as pool:
        done = [each for found in pool.map(work, range(4)) for each in found]
    assert done == [True] * 60
    assert [i.status for i in store.experiments.items("towns")] == ["ok"] * 60
    assert store.verify() == []
