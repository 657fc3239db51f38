"""The store that recorded runs go to."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hopscope.api.recording import background
from hopscope.api.recording.background import Measure
from hopscope.api.store import Store
from hopscope.runtime.errors import StoreError, UsageError
from hopscope.runtime.types import Run
from hopscope.store.store import Store as RecordStore

_log = logging.getLogger(__name__)


class Keeper:
    """Stores recorded runs. Threads may share it."""

    def __init__(
        self,
        store: "str | Path | RecordStore | None" = None,
        *,
        experiment: str | None = None,
        measure: str | Measure | None = None,
    ) -> None:
        """
        Args:
            store: a file or URL, by default that of the command line, or an open store.
            experiment: the runs become part of it, so that tables compare them with others.
            measure: which runs of the open store are measured in the background.

        Raises:
            UsageError: `store` is none or, with `measure`, is not open; or the experiment holds
                runs that were made here.
            StoreError: it cannot be opened.
        """
        if not isinstance(store, str | Path | RecordStore | None):
            raise UsageError(f"store: give a file, a URL or an open hopscope.Store, not {store!r}")
        self.background = None if measure is None else background.of(store, measure)
        """What measures in the background."""
        self._own = not isinstance(store, RecordStore)
        self.store = store if isinstance(store, RecordStore) else Store.open(store)
        self.experiment = experiment
        if experiment is not None:
            self.store.experiments.begin_import(experiment)

    def keep(self, run: Run) -> str | None:
        """Store a run; why it is not stored, if that failed."""
        try:
            if self.experiment is None:
                self.store.save(run)
            else:
                self.store.experiments.keep_imported(self.experiment, [run], label=run.workflow)
        except StoreError as error:
            return tell(f"the run {run.id[:12]} is not stored: {error}")
        if self.background is not None and run.steps and run.status == "ok":
            self.background.offer(run)
        return None

    def close(self) -> None:
        """Close the store, unless it was given open."""
        if self._own:
            self.store.close()


def recorded(
    name: str, told: Callable[[], dict[str, Any]], empty: dict[str, Any]
) -> dict[str, Any]:
    """What a span tells of the user's values; `empty`, with a warning, if they cannot be read."""
    try:
        return told()
    except Exception as error:  # whatever a value of the user raises
        tell(f"{name} is recorded without its text: {type(error).__name__}: {error}")
        return empty


def tell(problem: str) -> str:
    """Log a problem of a recording; the program goes on."""
    _log.warning(problem)
    return problem
