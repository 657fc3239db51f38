"""Finding runs: by id, by prefix, the latest, in lists."""

import pytest
from sqlalchemy import event

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Credit, Measurement, Provenance, Usage
from hopscope.store.store import Store
from tests.store.run_examples import a_run, credits_of


def test_a_list_shows_the_newest_first_with_what_they_cost(store: Store) -> None:
    for name, minute in (("old", 0), ("new", 2), ("middle", 1)):
        store.save(a_run(name, minute=minute))
    store.save_credits(credits_of(a_run("new")))
    found = store.runs(2)
    assert [summary.id for summary in found] == ["new", "middle"]
    newest = found[0]
    assert (newest.steps, newest.retrievals, newest.credits) == (6, 3, 14)
    assert newest.usage == Usage(input_tokens=1200, output_tokens=36, calls=3)
    assert newest.started == a_run(minute=2).started
    assert found[1].credits == 0


def test_a_list_shows_the_total_credit_where_it_was_measured(store: Store) -> None:
    run = a_run("new")
    store.save(run)
    [known, unknown] = [
        Credit(
            run_id=run.id,
            step=None,
            rule="total",
            meter=meter,
            measurement=measurement,
            provenance=Provenance(reader="r"),
        )
        for meter, measurement in (
            ("seper", Measurement(value=0.75)),
            ("seper_hard", Measurement(value=0.5)),
        )
    ]
    store.save_credits([unknown])
    assert store.runs()[0].seper_delta is None
    store.save_credits([known])
    assert store.runs()[0].seper_delta == 0.75
    assert store.runs()[0].totals == {"seper": 0.75, "seper_hard": 0.5}


def test_a_list_can_be_narrowed(store: Store) -> None:
    failed = a_run("f").model_copy(update={"status": "failed", "workflow": "naive", "steps": ()})
    store.save(failed)
    store.save(a_run("g"))
    assert [s.id for s in store.runs(status="failed")] == ["f"]
    assert [s.id for s in store.runs(workflow="ircot")] == ["g"]
    assert store.runs(workflow="crag") == []
    assert store.runs(workflow="naive")[0].steps == 0


def test_a_list_is_two_queries_however_many_runs(store: Store) -> None:
    for index in range(5):
        store.save(a_run(f"run-{index}"))
    asked: list[str] = []
    engine = store._database._engine
    event.listen(engine, "before_cursor_execute", lambda _c, _cur, sql, *_: asked.append(sql))
    store.runs()
    assert sum(sql.startswith("SELECT") for sql in asked) == 2


def test_a_run_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    for name in ("abc1", "abc2", "abd", "ABE", "ab_", "ab%"):
        store.save(a_run(name))
    assert store.load("abd").id == "abd"
    assert store.load("abc1").id == "abc1"
    assert store.load("AB").id == "ABE"
    assert store.load("ab_").id == "ab_"
    with pytest.raises(UsageError, match=r"several runs begin with 'abc': abc1, abc2; give more"):
        store.load("abc")
    with pytest.raises(UsageError, match=r"several runs"):
        store.credits("ab")


def test_a_whole_id_wins_over_longer_ones(store: Store) -> None:
    for name in ("a", "ab", "abc"):
        store.save(a_run(name))
    assert store.load("a").id == "a"


@pytest.mark.parametrize("run_id", ["", "nothing"])
def test_an_unknown_run_says_how_to_list_them(store: Store, run_id: str) -> None:
    store.save(a_run())
    with pytest.raises(UsageError, match=rf"no run '{run_id}' in .*`hopscope ls`"):
        store.load(run_id)


def test_the_latest_run_is_the_one_started_last(store: Store) -> None:
    with pytest.raises(UsageError, match=r"no runs in .* yet"):
        store.latest()
    for name, minute in (("first", 0), ("last", 9), ("late-save", 5)):
        store.save(a_run(name, minute=minute))
    assert store.latest().id == "last"


def test_two_runs_started_at_once_are_listed_by_saving(store: Store) -> None:
    for name in ("one", "two"):
        store.save(a_run(name))
    assert [s.id for s in store.runs()] == ["two", "one"]
    assert store.latest().id == "two"
