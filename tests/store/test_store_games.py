"""The values of coalitions are stored as they were measured."""

from hopscope.runtime.types import CoalitionValue, Measurement
from hopscope.store.store import Store
from tests.store.run_examples import a_run, counts, credits_of, games_of


def test_values_are_read_back_equal(store: Store) -> None:
    run = a_run()
    store.save(run)
    given = [*games_of(run), *games_of(run, "grogu")]
    store.save_credits(credits_of(run), games=given)
    assert sorted(store.games(run.id), key=repr) == sorted(given, key=repr)
    assert store.verify() == []


def test_coalitions_and_estimators_are_stored_once_for_all_runs(store: Store) -> None:
    runs = [a_run("one"), a_run("two")]
    store.save_all(runs)
    before = counts(store)["texts"]
    for run in runs:
        store.save_credits([], games=games_of(run))
    rows = counts(store)
    assert (rows["games"], rows["coalition_values"], rows["coalitions"]) == (4, 12, 3)
    assert rows["texts"] == before + 1


def test_a_later_measurement_adds_to_the_values(store: Store) -> None:
    """A rule that needs fewer coalitions took the others away."""
    run = a_run()
    store.save(run)
    [steps, inside] = games_of(run)
    store.save_credits([], games=[steps])
    again = Measurement(value=0.5, estimator="mean of 10")
    new = [
        CoalitionValue(members=(0,), evidence="e1", measurement=again),
        CoalitionValue(members=(2,), evidence="e3", measurement=again),
    ]
    later = steps.model_copy(update={"values": tuple(new), "measured": 2})
    store.save_credits([], games=[later, inside])
    found, other = store.games(run.id)
    assert other == inside
    assert found.measured == 4
    assert {v.members: v.measurement.value for v in found.values} == {
        (): 0.25, (0,): 0.5, (2,): 0.5, (0, 2): None
    }  # fmt: skip
    assert store.verify() == []


def test_the_values_of_a_replaced_run_go_with_its_steps(store: Store) -> None:
    run = a_run()
    store.save(run)
    store.save_credits([], games=games_of(run))
    store.save(a_run(hops=1))
    assert store.games(run.id) == []
    assert counts(store)["coalition_values"] == 0


def test_a_deleted_value_is_found(store: Store) -> None:
    run = a_run()
    store.save(run)
    store.save_credits([], games=games_of(run))
    with store._database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM coalition_values WHERE value IS NULL")
    assert {fault.table for fault in store.verify()} == {"games"}


def test_answers_stay_where_a_later_measurement_has_none(store: Store) -> None:
    """Values that are known are not measured again, so no answers come with them."""
    run = a_run()
    store.save(run)
    [steps, _] = games_of(run)
    store.save_credits([], games=[steps])
    plain = tuple(value.model_copy(update={"answers": None}) for value in steps.values)
    store.save_credits([], games=[steps.model_copy(update={"values": plain})])
    assert store.games(run.id) == [steps]


def test_values_without_answers_are_as_before(store: Store) -> None:
    """A row of an older version, whose seal knows no answers."""
    run = a_run()
    store.save(run)
    store.save_credits([], games=games_of(run))
    sealed = "SELECT hash FROM games"
    [steps, _] = games_of(run)
    plain = tuple(value.model_copy(update={"answers": None}) for value in steps.values)
    bare = a_run("bare")
    store.save(bare)
    store.save_credits([], games=[steps.model_copy(update={"values": plain, "run_id": bare.id})])
    with store._database.reading() as connection:
        assert len(set(connection.exec_driver_sql(sealed).scalars())) == 3
        told = connection.exec_driver_sql("SELECT count(answers) FROM games").scalar_one()
    assert told == 2
    assert store.verify() == []


def test_changed_or_damaged_answers_are_found(store: Store) -> None:
    run = a_run()
    store.save(run)
    store.save_credits([], games=games_of(run))
    other = "0x" if store.name.startswith("postgresql") else "x"
    for damage in ("NULL", "'\\x00'" if other == "0x" else "x'00'"):
        with store._database.writing() as connection:
            connection.exec_driver_sql(f"UPDATE games SET answers = {damage}")
        assert {fault.table for fault in store.verify()} <= {"games", "runs"}
        assert store.verify() != []
