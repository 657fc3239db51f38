"""When a run was measured, what it cost, and which of several appraisals counts."""

from datetime import timedelta
from io import StringIO

import pytest
from sqlalchemy import text

from hopscope.runtime.errors import StoreError
from hopscope.runtime.types import Appraisal, Credit, Measurement, PairCounts, Provenance, Usage
from hopscope.store.database import migrate
from hopscope.store.database.database import Database
from hopscope.store.database.location import resolve
from hopscope.store.exporters import jsonl
from hopscope.store.store import Store
from tests.store.run_examples import PROVENANCE, STARTED, a_run, counts, credits_of


def provenance(seed: int) -> Provenance:
    return Provenance(reader="r", seed=seed)


def total(seed: int, value: float, *, meter: str = "seper", run_id: str = "run-1") -> Credit:
    return Credit(
        run_id=run_id,
        step=None,
        rule="total",
        meter=meter,
        measurement=Measurement(value=value),
        provenance=provenance(seed),
    )


def measured(seed: int, minute: int, *, run_id: str = "run-1", calls: int = 1) -> Appraisal:
    return Appraisal(
        run_id=run_id,
        provenance=provenance(seed),
        measured=STARTED + timedelta(minutes=minute),
        usage=Usage(input_tokens=90, output_tokens=10, calls=calls),
        seconds=0.5,
        pairs=PairCounts(asked=9, cached=minute, computed=4) if minute % 2 else None,
    )


def test_credits_come_back_in_the_order_they_were_measured_in(store: Store) -> None:
    """Not in that of their settings: those of seed 1 are interned for an earlier run."""
    store.save(a_run("other"))
    store.save_credits([total(1, 0.1, run_id="other")])
    store.save(a_run())
    store.save_credits([total(0, 0.2)], [measured(0, 1)])
    store.save_credits([total(1, 0.3)], [measured(1, 2)])
    assert [c.provenance.seed for c in store.credits("run-1")] == [0, 1]
    assert store.runs()[0].seper_delta == 0.3
    store.save_credits([total(0, 0.4)], [measured(0, 3)])
    assert [c.provenance.seed for c in store.credits("run-1")] == [1, 0]
    assert {s.id: s.seper_delta for s in store.runs()} == {"run-1": 0.4, "other": 0.1}


def test_credits_of_nobody_knows_when_come_first(store: Store) -> None:
    store.save(a_run())
    store.save_credits([total(0, 0.2)], [measured(0, 1)])
    store.save_credits([total(1, 0.3)])
    assert [c.provenance.seed for c in store.credits("run-1")] == [1, 0]
    assert store.runs()[0].seper_delta == 0.2


def test_a_list_shows_nothing_rather_than_a_total_of_another_appraisal(store: Store) -> None:
    store.save(a_run())
    store.save_credits([total(0, 0.2)], [measured(0, 1)])
    store.save_credits([total(1, 0.9, meter="grogu")], [measured(1, 2)])
    assert store.runs()[0].seper_delta is None


def test_appraisals_add_up_and_the_same_is_kept_once(store: Store) -> None:
    store.save(a_run())
    given = [measured(0, 1), measured(0, 2, calls=5), measured(1, 3)]
    store.save_credits([total(0, 0.2), total(1, 0.3)], given)
    store.save_credits([total(0, 0.2)], given[:2])
    assert store.appraisals("run") == given
    assert store.verify() == []


def test_a_run_that_went_on_loses_its_appraisals_too(store: Store) -> None:
    run = a_run()
    store.save(run.model_copy(update={"steps": run.steps[:2]}))
    store.save_credits([total(0, 0.2)], [measured(0, 1)])
    store.save(run)
    assert (store.credits("run-1"), store.appraisals("run-1")) == ([], [])


def test_an_appraisal_of_an_unsaved_run_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match=r"run-1.*save it first"):
        store.save_credits([], [measured(0, 1)])


def test_passages_of_a_step_have_credits_of_their_own(store: Store) -> None:
    store.save(a_run())
    credits = [
        total(0, value).model_copy(update={"step": 1, "passage": passage, "rule": "shapley"})
        for value, passage in ((0.1, "p1"), (0.2, "p2"), (0.3, None))
    ]
    store.save_credits(credits)
    assert sorted(store.credits("run-1"), key=repr) == sorted(credits, key=repr)


def test_an_export_tells_of_appraisals(store: Store) -> None:
    store.save(a_run())
    store.save_credits([total(0, 0.2)], [measured(0, 1)])
    file = StringIO()
    jsonl.export(store, file)
    file.seek(0)
    assert list(next(jsonl.read(file)).appraisals) == [measured(0, 1)]


def test_the_credits_of_the_first_tables_are_kept(url: str) -> None:
    database = Database(resolve(url))
    database.prepare()
    with database.migrating() as connection:
        migrate.run_alembic(connection, "m001")
        connection.execute(
            text(
                "INSERT INTO provenances (number, settings_hash, reader, seed, settings) "
                "VALUES (900, 'h', 'r', '7', '{}')"
            )
        )
        connection.execute(
            text(
                "INSERT INTO runs (number, id, question, answers, question_id, workflow, options, "
                "reader, retriever, seed, status, started, seconds, trace_id, span_id) VALUES "
                "(900, 'old', 'Who?', '[]', '', 'naive', '{}', '', '', '0', 'ok', "
                "'2026-01-01 00:00:00.000000', 0.1, '', '')"
            )
        )
        connection.execute(
            text(
                "INSERT INTO credits (run, step, rule, meter, provenance, value, n, seed, "
                "estimator, low, high) VALUES (900, 2, 'shapley', 'seper', 900, 0.1, 10, "
                "'99999999999999999999', 'e', -0.5, 0.30000000000000004)"
            )
        )
    database.close()
    with Store.open(url) as store:
        [credit] = store.credits("old")
        assert (credit.step, credit.passage, credit.rule) == (2, None, "shapley")
        assert credit.measurement == Measurement(
            value=0.1, n=10, seed=99999999999999999999, estimator="e", low=-0.5,
            high=0.30000000000000004,
        )  # fmt: skip
        assert "credits_before" not in counts(store)
        store.save(a_run())
        store.save_credits(credits_of(a_run()))
        assert PROVENANCE in [c.provenance for c in store.credits("run-1")]
