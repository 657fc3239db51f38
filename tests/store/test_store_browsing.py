"""Pages of runs: each run once, whatever the order."""

from itertools import chain
from pathlib import Path

import pytest

from hopscope.store.runs.browsing import RunQuery, Sort
from hopscope.store.store import Store
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
    for text, runs in (("%", 0), ("_", 0), ("NALMIR", 2), ("{{7*7}}", 2)):
        assert store.page(RunQuery(search=text)).total == runs
