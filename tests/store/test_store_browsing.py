"""Pages of runs: each run once, whatever the order."""

from datetime import timedelta
from itertools import chain
from pathlib import Path

import pytest
from sqlalchemy import select, text

from hopscope.runtime.types import Appraisal, Credit, Measurement, Provenance, Question
from hopscope.store.database.migrate import VERSION_TABLE
from hopscope.store.database.schema import totals
from hopscope.store.runs.browsing import RunQuery, Sort
from hopscope.store.store import Store
from tests.fakes import NOW
from tests.view import experiment


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    file = tmp_path_factory.mktemp("browsing")
    return Store.open(experiment.database(file))


@pytest.mark.parametrize("sort", Sort.__args__)
@pytest.mark.parametrize("descending", [True, False])
def test_pages_hold_each_run_once(sort: Sort, descending: bool, store: Store) -> None:
    """Equal values of the column would let a run stand on two pages, or on none."""
    queries = [
        RunQuery(sort=sort, descending=descending, size=2, page=page) for page in (1, 2, 3, 4)
    ]
    pages = [store.page(query) for query in queries]
    found = [run.id for run in chain.from_iterable(page.runs for page in pages)]
    assert sorted(found) == sorted(store.ids())
    assert [page.total for page in pages] == [6] * 4
    assert len(pages[3].runs) == 0


def test_unmeasured_runs_come_last_in_both_directions(tmp_path: Path) -> None:
    with Store.open(tmp_path / "runs.db") as store:
        runs = experiment.fill(store)
        store.save(runs[0].model_copy(update={"id": "bare"}))
        for descending in (True, False):
            page = store.page(RunQuery(sort="gain", descending=descending))
            assert page.runs[-1].id == "bare"
        assert [run.id for run in store.page(RunQuery(gain="unmeasured")).runs] == ["bare"]


def test_wildcards_are_searched_as_they_stand(store: Store) -> None:
    for part, runs in (("%", 0), ("_", 0), ("NALMIR", 2), ("{{7*7}}", 2)):
        assert store.page(RunQuery(search=part)).total == runs


def test_filter_and_order_by_credit_follow_the_column(url: str) -> None:
    """The column shows the appraisal measured last, which need not be the one stored last."""
    with Store.open(url) as store:
        again, plain, other = _appraised(store)
        page = store.page(RunQuery(sort="gain"))
        shown = [(run.id, run.seper_delta) for run in page.runs]
        assert shown == [(plain, 0.1), (again, -0.5), (other, None)]
        for gain, run in (("positive", plain), ("negative", again), ("unmeasured", other)):
            found = store.page(RunQuery.model_validate({"gain": gain})).runs
            assert [each.id for each in found] == [run]
        [found_other] = store.page(RunQuery(gain="positive", meter="grogu")).runs
        assert found_other.id == other
        pages = [store.page(RunQuery(sort="gain", size=1, page=page)) for page in (1, 2, 3)]
        assert [run.id for page in pages for run in page.runs] == [plain, again, other]
        filtered = store.page(RunQuery(sort="gain", search="question 2"))
        assert [run.id for run in filtered.runs] == [other]


def test_an_older_database_gets_the_same_totals(url: str) -> None:
    """They were looked up among all credits, for every list."""
    with Store.open(url) as store:
        _appraised(store)
        query = select(totals).order_by(totals.c.run, totals.c.meter)
        with store._database.reading() as connection:
            kept = connection.execute(query).all()
        with store._database.writing() as connection:
            connection.execute(text("DROP TABLE totals"))
            connection.execute(text("ALTER TABLE games DROP COLUMN answers"))
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = 'm014'"))
    with Store.open(url) as store, store._database.reading() as connection:
        assert connection.execute(query).all() == kept
        assert [(row.meter, row.value) for row in kept] == [
            ("seper", -0.5),
            ("seper", 0.1),
            ("grogu", 0.3),
        ]


def test_a_replaced_run_is_unmeasured(url: str) -> None:
    """Its credits are of steps that no longer exist."""
    with Store.open(url) as store:
        again, *_ = _appraised(store)
        store.save(store.load(again).model_copy(update={"answer": "resumed"}))
        assert [run.id for run in store.page(RunQuery(gain="negative")).runs] == []
        assert store.page(RunQuery(search="resumed")).runs[0].totals == {}


def _appraised(store: Store) -> tuple[str, str, str]:
    """Ids of runs. The first is measured with old, new and old settings again; the last budget of
    the second sufficed for nothing; the third was last measured by another meter only."""
    old, new, poor = (Provenance(reader="hf:small", seed=seed, settings={}) for seed in (1, 2, 3))

    def total(
        run: str, provenance: Provenance, value: float | None, meter: str = "seper"
    ) -> Credit:
        reason = "the credit budget does not suffice" if value is None else None
        measured = Measurement(value=value, reason=reason, n=1, estimator="exact")
        return Credit(
            run_id=run, step=None, rule="total", meter=meter, measurement=measured,
            provenance=provenance,
        )  # fmt: skip

    made = [experiment.run(place, question, "ircot") for place, question in enumerate(_asked())]
    store.save_all(made)
    again, plain, other = (run.id for run in made)
    credits = [
        total(again, old, -0.5), total(again, new, 0.5), total(plain, new, 0.1),
        total(other, old, 0.9), total(other, new, 0.3, "grogu"), total(plain, poor, None),
    ]  # fmt: skip
    times = [(again, old, 0), (again, new, 1), (again, old, 2), (plain, new, 0)]
    times += [(other, old, 0), (other, new, 1), (plain, poor, 1)]
    appraised = [
        Appraisal(run_id=run, provenance=by, measured=NOW + timedelta(hours=hours))
        for run, by, hours in times
    ]
    store.save_credits(credits, appraised)
    return again, plain, other


def _asked() -> list[Question]:
    return [Question(text=f"Question {i}?", answers=("yes",)) for i in range(3)]
