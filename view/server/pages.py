"""The pages: lists, a run, an experiment, two runs or experiments beside each other.

What only some of them need is imported when it is: the list is shown half a second earlier.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qs, quote, urlencode

from fastapi import APIRouter, Query, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from hopscope.runtime.errors import MissingExperimentError, UsageError
from hopscope.store.runs.browsing import RunQuery
from hopscope.view import experiment_page, links
from hopscope.view.html import Drawn, render
from hopscope.view.server import labelling
from hopscope.view.server.guarding import FormToken

if TYPE_CHECKING:
    from hopscope.view.server.kept import KeptRecords

LARGEST_FORM = 50_000
"""Bytes."""
LISTED = 50
"""Runs of a page of failures."""


def router(kept: "KeptRecords", forms: FormToken | None) -> APIRouter:
    """The routes; without `forms` nobody can label."""
    routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    store = kept.store

    @routes.get("/")
    def index(request: Request) -> HTMLResponse:
        query = _query(request.query_params)
        found = store.page(query)
        given = query.model_dump(exclude_defaults=True)
        last = max(1, -(-found.total // found.size))

        def link(**changes: Any) -> str:
            return "/?" + urlencode({**given, **changes})

        return _page(
            "index.html",
            title="Runs and experiments",
            found=found,
            query=query,
            last=last,
            link=link,
            workflows=store.workflows(),
            experiments=[
                (each, store.experiments.progress(each.name), quote(each.name, safe=""))
                for each in store.experiments.all()[:50]
            ],
        )

    @routes.get("/runs/{run}")
    def run(run: str) -> HTMLResponse:
        from hopscope.view import run_page
        from hopscope.view.run_figures import RunRecords

        records = RunRecords.load(store, run)
        values = run_page.content(records)
        labels = labelling.labels(store, records.run.id)
        return _page(
            "run.html",
            **values,
            labels=labels,
            judgments=labelling.JUDGMENTS,
            author=labelling.author(),
            form_token=forms.of(records.run.id) if forms else None,
        )

    @routes.post("/runs/{run}/labels")
    async def label(run: str, request: Request) -> Response:
        if forms is None:
            return _error(403, "this server was started with --read-only")
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_FORM:
                return _error(413, "the form is too long")
        form = {name: values[0] for name, values in parse_qs(body.decode(errors="replace")).items()}
        if not forms.valid(run, form.get("token", "")):
            return _error(403, "the form is not of this server, or older than it: load it again")
        await run_in_threadpool(labelling.save, store, run, form)
        return RedirectResponse(f"/runs/{quote(run, safe='')}#labels", status_code=303)

    @routes.get("/experiments/{name:path}")
    def experiment(name: str) -> HTMLResponse:
        values = experiment_page.plan(store, name)
        if values["progress"].total:
            values["sources"] = [
                experiment_page.Source(each, f"/fragments/{each}/{quote(name, safe='')}")
                for each in (*experiment_page.PICTURES, "tables")
            ]
        others = [each.name for each in store.experiments.all()[:50] if each.name != name]
        return _page("experiment.html", **values, others=others)

    @routes.get("/fragments/{figure}/{name:path}")
    def fragment(figure: str, name: str) -> HTMLResponse:
        """A picture, or the tables, of an experiment."""
        try:
            if figure == "tables":
                records = kept.experiment(name)
                tables = [records.table(each) for each in ("overview", "differences")]
                return HTMLResponse(render("tables.html", tables=tables))
            spec = kept.experiment_figure(name, figure)
            drawn = Drawn(figure, spec, partial(links.of_experiment, name))
        except MissingExperimentError:
            raise
        except UsageError as error:
            return HTMLResponse(render("unmeasured.html", reason=str(error)))
        return HTMLResponse(render("figure.html", drawn=drawn))

    @routes.get("/failures/{name:path}")
    def failures(
        request: Request, name: str, page: Annotated[int, Query(ge=1)] = 1
    ) -> HTMLResponse:
        """The runs behind a cell of the heat map."""
        from hopscope.view import failed_runs

        given = dict(request.query_params)
        cell = failed_runs.Cell.of(given)
        every = kept.experiment(name).judged
        found = failed_runs.within(every, cell)
        shown = found[(page - 1) * LISTED : page * LISTED]
        cells = failed_runs.shares(every)
        return _page(
            "failures.html",
            title=f"Failures in {name}",
            experiment=name,
            address=quote(name, safe=""),
            cell=cell,
            judged=len(every),
            total=len(found),
            runs=[(run, failed_runs.places(run, cell)) for run in shown],
            errors=failed_runs.ERRORS,
            steps=[step for _, step in sorted({(row["order"], row["step"]) for row in cells})],
            hops=sorted({row["hops"] for row in cells}),
            page=page,
            last=max(1, -(-len(found) // LISTED)),
            link=lambda number: "?" + urlencode({**given, "page": number}),
        )

    @routes.get("/compare/runs")
    def compare_runs(a: str, b: str) -> HTMLResponse:
        from hopscope.view import run_page
        from hopscope.view.run_figures import RunRecords

        both = [RunRecords.load(store, each) for each in (a, b)]
        if len({records.run.question.text for records in both}) > 1:
            raise UsageError("these are runs of different questions: choose two of one question")
        sides = [run_page.steps(records) for records in both]
        longest = max(map(len, sides))
        rows = [[side[at] if at < len(side) else None for side in sides] for at in range(longest)]
        figures = [run_page.figures(records, linked=False)[:1] for records in both]
        reports = [records.report for records in both]
        return _page(
            "compare_runs.html", title="Two runs", reports=reports, rows=rows, figures=figures
        )

    @routes.get("/compare/experiments")
    def compare_experiments(baseline: str, other: str) -> HTMLResponse:
        from hopscope.lab import comparison

        records = kept.experiment(baseline, other)
        found = comparison.compare(baseline, other, store=store, tables=("flipped",))
        tables = [records.table("overview"), records.table("differences")]
        tables += [each.model_dump() for each in found.tables]
        return _page(
            "compare_experiments.html",
            title=f"{other} against {baseline}",
            baseline=baseline,
            other=other,
            tables=tables,
        )

    return routes


def _query(given: Mapping[str, str]) -> RunQuery:
    """The query of a filter form, whose empty fields are no filters.

    Raises:
        UsageError: a field has no such value.
    """
    try:
        return RunQuery.model_validate({name: value for name, value in given.items() if value})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise UsageError(f"the filter {field}: {first['msg']}") from None


def _page(template: str, **values: Any) -> HTMLResponse:
    return HTMLResponse(render(template, **values))


def _error(status: int, reason: str) -> HTMLResponse:
    return HTMLResponse(
        render("error.html", title="Not possible", reason=reason), status_code=status
    )
