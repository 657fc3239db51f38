"""Records of experiments with their tables and pictures, kept until more of their items are done or
measured: those of large experiments take seconds."""

from collections.abc import Callable, Collection, Mapping
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from hopscope.runtime.errors import MissingRunError
from hopscope.store.experiments.records import Version
from hopscope.store.store import Store
from hopscope.view.pictures.specification import Spec

if TYPE_CHECKING:
    from hopscope.view.experiment_figures import ExperimentRecords

Records = TypeVar("Records")
MOST = 8
"""Experiments whose records are kept."""


class KeptRecords:
    """The records of a store. Threads share it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = Lock()
        self._kept: dict[tuple[str, ...], tuple[list[Version], ExperimentRecords]] = {}

    def experiment(self, *names: str) -> "ExperimentRecords":
        """
        Raises:
            UsageError: there is no such experiment.
        """
        from hopscope.view.experiment_figures import ExperimentRecords

        now = [self.store.experiments.version(name) for name in names]
        with self._lock:
            known = self._kept.get(names)
        if known is None or known[0] != now:
            known = (now, ExperimentRecords(self.store, *names))
        with self._lock:
            self._kept.pop(names, None)
            self._kept[names] = known
            while len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]
        return known[1]

    def experiment_figure(self, name: str, figure: str) -> Spec:
        """
        Raises:
            UsageError: there is no such experiment or picture, or nothing to draw.
        """
        from hopscope.view.experiment_figures import FIGURES

        _known(FIGURES, figure)
        return self.experiment(name).figure(figure)

    def figure(
        self, figures: Mapping[str, Callable[[Records], Spec]], records: Records, name: str
    ) -> Spec:
        """
        Raises:
            UsageError: there is no such picture, or nothing to draw.
        """
        _known(figures, name)
        return figures[name](records)


def _known(figures: Collection[str], name: str) -> None:
    if name not in figures:
        raise MissingRunError(f"no picture {name!r}: choose from {', '.join(figures)}")
