"""Tables of an experiment are kept until more of it is done."""

from pathlib import Path

from hopscope.store.store import Store
from hopscope.view.server import kept
from tests.view import experiment


def test_records_are_made_anew_when_more_is_done(tmp_path: Path) -> None:
    """A live page would show the first tables for ever."""
    with Store.open(tmp_path / "runs.db") as store:
        experiment.fill(store)
        records = kept.KeptRecords(store)
        first = records.experiment(experiment.NAME)
        assert records.experiment(experiment.NAME) is first
        experiment.fill(store, questions=("Who else?",))
        assert records.experiment(experiment.NAME) is not first
        assert len(records.experiment(experiment.NAME).rows) == 6


def test_only_a_few_are_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path / "runs.db") as store:
        records = kept.KeptRecords(store)
        names = [f"e{i}" for i in range(kept.MOST + 2)]
        for name in names:
            experiment.fill(store, name, questions=())
            records.experiment(name)
        assert len(records._kept) == kept.MOST
