"""The content of an experiment's page: its plan, its progress, pictures and tables."""

from typing import TYPE_CHECKING, Any, NamedTuple

from hopscope.runtime.errors import UsageError
from hopscope.store.store import Store
from hopscope.view.html import Drawn

if TYPE_CHECKING:
    from hopscope.view.experiment_figures import ExperimentRecords

PICTURES = ("workflows", "searches", "frontier", "trust", "failures")
"""The names of `experiment_figures.FIGURES`, which take longer to import than the page to show."""


class Source(NamedTuple):
    """A picture that the page loads after it was shown."""

    name: str
    url: str


def plan(store: Store, name: str) -> dict[str, Any]:
    """What an experiment is and how far it is; quick, whatever its size.

    Raises:
        UsageError: there is none of that name.
    """
    return {
        "title": name,
        "experiment": store.experiments.find(name),
        "progress": store.experiments.progress(name),
        "figures": [],
        "sources": [],
        "tables": [],
    }


def content(store: Store, records: "ExperimentRecords") -> dict[str, Any]:
    """The values of the template `experiment_content.html`, pictures and tables included.

    Raises:
        UsageError: nothing is done yet.
    """
    tables = [records.table(name) for name in ("overview", "differences")]
    return {**plan(store, records.names[0]), "figures": figures(records), "tables": tables}


def figures(records: "ExperimentRecords") -> list[Drawn]:
    """The pictures that the experiment has records for."""
    from hopscope.view.experiment_figures import FIGURES

    found = []
    for name in FIGURES:
        try:
            found.append(Drawn(name, records.figure(name)))
        except UsageError:  # nothing of it was measured
            continue
    return found
