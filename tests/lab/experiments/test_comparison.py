"""`hopscope.compare`: the tables of the command, as data, frames and HTML."""

from pathlib import Path

import pytest

import hopscope
from hopscope.lab.comparison import columns
from hopscope.lab.tables import differences, overview
from hopscope.runtime.errors import UsageError
from tests.cli.experiment_example import fill, make_runs


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("compare") / "runs.db"
    fill(file, make_runs())
    return file


def test_tables_are_data_and_frames(database: Path) -> None:
    found = hopscope.compare("done", store=database, resamples=100)
    assert [table.name for table in found.tables] == ["overview", "differences"]
    rows = found.to_dicts()
    assert [row["system"] for row in rows] == ["closed_book", "naive"]
    assert rows[1]["questions"] == 3
    assert rows[1]["seper_delta_low"] <= rows[1]["seper_delta"] <= rows[1]["seper_delta_high"]
    pandas = pytest.importorskip("pandas")
    frame = found.to_frame("overview")
    assert isinstance(frame, pandas.DataFrame)
    assert frame["system"].tolist() == ["closed_book", "naive"]
    assert frame["seper_delta"].tolist()[1] == rows[1]["seper_delta"]


def test_columns_give_the_numbers_of_the_tables(database: Path) -> None:
    """Of real runs on Hopland: the pictures of the view are made of columns."""
    with hopscope.Store.open(database) as store:
        by_rows = hopscope.compare("done", store=store, resamples=100).tables
        found = columns("done", store=store, resamples=100)
    assert [*overview.build(found), *differences.build(found)] == list(by_rows)


def test_tables_are_shown_in_every_form(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with hopscope.Store.open(database) as store:
        found = hopscope.compare("done", store=store, tables=["overview"], resamples=100)
        assert store.runs()  # a store that was given stays open
    found.show()
    assert "closed_book" in capsys.readouterr().out
    assert found._repr_html_().startswith("<pre")
    assert "ΔSePer" in found._repr_html_()
    assert "| naive |" in found.markdown()
    assert r"\toprule" in found.latex()
    assert repr(found) == "<Comparison: overview>"


def test_what_is_not_there_is_told(database: Path) -> None:
    with pytest.raises(UsageError, match="no experiment"):
        hopscope.compare("other", store=database)
    with pytest.raises(UsageError, match="name an experiment"):
        hopscope.compare(store=database)
    with pytest.raises(UsageError, match="nothing of begun is done yet"):
        hopscope.compare("begun", store=database)
    with pytest.raises(UsageError, match="choose from"):
        hopscope.compare("done", store=database, tables=["overvue"])
    found = hopscope.compare("done", store=database, tables=["overview"], resamples=100)
    with pytest.raises(UsageError, match="no table 'differences' in this comparison: overview"):
        found.to_frame("differences")
    assert not (database.parent / "none.db").exists()
    with pytest.raises(UsageError):
        hopscope.compare("done", store=database.parent / "none.db")
    assert not (database.parent / "none.db").exists()
