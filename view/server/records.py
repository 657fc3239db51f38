"""The JSON API: the records that `--json` prints. `/api/openapi.json` describes it."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from hopscope.lab.table_forms.table import Table
from hopscope.store.experiments.records import Experiment, Progress
from hopscope.store.labels import Label
from hopscope.store.runs.browsing import RunPage, RunQuery
from hopscope.tracing.reports.records import RunReport
from hopscope.tracing.what_if.answers import InteractionRow, WithoutRow
from hopscope.view.failed_runs import Cell, Error, FailedRun, within
from hopscope.view.run_figures import FIGURES, RunRecords
from hopscope.view.server import labelling

if TYPE_CHECKING:
    from hopscope.view.server.kept import KeptRecords

Parts = Annotated[list[str], Query(alias="part", description="A step's number, or p: and a key.")]


def router(kept: "KeptRecords") -> APIRouter:
    """The routes, over the records of a store."""
    routes = APIRouter(prefix="/api")
    store = kept.store

    @routes.get("/runs", response_model=RunPage)
    def runs(query: Annotated[RunQuery, Query()]) -> Any:
        """A page of runs."""
        return store.page(query)

    @routes.get("/runs/{run}", response_model=RunReport, response_model_exclude_none=False)
    def run(run: str) -> Any:
        """A run with the credit of each step, as `hopscope show --json`."""
        return RunRecords.load(store, run).full_report

    @routes.get("/runs/{run}/credits")
    def credits(run: str) -> list[dict[str, Any]]:
        """The rows of credit of the appraisal that is shown."""
        return RunRecords.load(store, run).credits

    @routes.get("/runs/{run}/without", response_model=list[WithoutRow])
    def without(run: str, part: Parts) -> Any:
        """Each meter's value without these parts, as `hopscope show --without --json`."""
        return RunRecords.load(store, run).without(part)

    @routes.get("/runs/{run}/interactions", response_model=list[InteractionRow])
    def interactions(run: str) -> Any:
        """The interactions of steps, as `hopscope show --interactions steps --json`."""
        return RunRecords.load(store, run).interactions()

    @routes.get("/runs/{run}/labels", response_model=list[Label])
    def labels(run: str) -> Any:
        """What people said about the run."""
        return labelling.labels(store, store.load(run).id)

    @routes.get("/runs/{run}/figures/{name}")
    def run_figure(run: str, name: str) -> dict[str, Any]:
        """A picture of the run as a Vega-Lite specification."""
        return kept.figure(FIGURES, RunRecords.load(store, run), name)

    @routes.get("/experiments", response_model=list[Experiment])
    def experiments() -> Any:
        """Every experiment, the newest first."""
        return store.experiments.all()

    @routes.get("/progress/{name:path}", response_model=Progress)
    def progress(name: str) -> Any:
        """Items of an experiment by status."""
        return store.experiments.progress(name)

    @routes.get("/tables/{table}/{name:path}", response_model=Table)
    def table(table: str, name: str) -> Any:
        """A table of an experiment, as `hopscope compare --json`."""
        return kept.experiment(name).full_table(table)

    @routes.get("/failures/{name:path}", response_model=list[FailedRun])
    def failures(
        name: str,
        error: Error | None = None,
        step: Annotated[str | None, Query(description="A step's number, or run.")] = None,
        hops: Annotated[str | None, Query(description="A number, or unknown.")] = None,
    ) -> Any:
        """The runs behind cells of the heat map of failures: those with such an error at such a
        step, with the records of `hopscope errors --json`."""
        return within(kept.experiment(name).judged, Cell(error, step, hops))

    @routes.get("/figures/{figure}/{name:path}")
    def experiment_figure(figure: str, name: str) -> dict[str, Any]:
        """A picture of an experiment as a Vega-Lite specification."""
        return kept.experiment_figure(name, figure)

    return routes
