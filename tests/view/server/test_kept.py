"""Tables of an experiment are kept until more of it is done or measured."""

from datetime import timedelta
from pathlib import Path

import pytest

from hopscope.runtime.types import Appraisal
from hopscope.store.store import Store
from hopscope.view import experiment_figures
from hopscope.view.experiment_figures import ExperimentRecords
from hopscope.view.server import kept
from tests.fakes import NOW
from tests.view import experiment


def test_records_are_made_anew_when_more_is_done(tmp_path: Path) -> None:
    """A live page would show the first tables for ever."""
    with Store.open(tmp_path / "runs.db") as store:
        experiment.fill(store)
        records = kept.KeptRecords(store)
        first = records.experiment(experiment.NAME)
        assert records.experiment(experiment.NAME) is first
        drawn = records.experiment_figure(experiment.NAME, "trust")
        assert records.experiment_figure(experiment.NAME, "trust") is drawn
        experiment.fill(store, questions=("Who else?",))
        assert records.experiment(experiment.NAME) is not first
        assert len(records.experiment(experiment.NAME).columns.run) == 6
        assert len(records.experiment_figure(experiment.NAME, "trust")["data"]["values"]) == 6


def test_records_are_made_anew_when_more_is_measured(tmp_path: Path) -> None:
    """`hopscope credit` leaves the numbers of items as they are."""
    with Store.open(tmp_path / "runs.db") as store:
        runs = experiment.fill(store)
        records = kept.KeptRecords(store)
        first = records.experiment(experiment.NAME)
        later = Appraisal(
            run_id=runs[0].id, provenance=experiment.SETTINGS, measured=NOW + timedelta(hours=1)
        )
        store.save_credits([], [later])
        second = records.experiment(experiment.NAME)
        assert second is not first
        assert records.experiment(experiment.NAME) is second
        version = store.experiments.version(experiment.NAME)
        assert (version.appraisals, version.measured) == (5, later.measured)
        assert version.created == NOW


def test_records_are_made_outside_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of other experiments would wait."""
    with Store.open(tmp_path / "runs.db") as store:
        experiment.fill(store)
        records = kept.KeptRecords(store)

        def made(*given: object) -> ExperimentRecords:
            assert not records._lock.locked()
            return ExperimentRecords(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(experiment_figures, "ExperimentRecords", made)
        assert records.experiment(experiment.NAME).names == (experiment.NAME,)


def test_only_a_few_are_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path / "runs.db") as store:
        records = kept.KeptRecords(store)
        names = [f"e{i}" for i in range(kept.MOST + 2)]
        for name in names:
            experiment.fill(store, name, questions=())
            records.experiment(name)
        assert len(records._kept) == kept.MOST
