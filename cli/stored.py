"""Which stored runs a command looks at: those named, or the newest."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hopscope.runtime.types import Run

RunIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUN]...", help="Ids of runs or their beginnings; all without any."),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1, help="Take the newest only, where none are named.", envvar="HOPSCOPE_LIMIT"
    ),
]
OfWorkflow = Annotated[
    str | None,
    typer.Option(
        "--workflow",
        "-w",
        metavar="W",
        help="Take runs of this workflow only, where none are named.",
        envvar="HOPSCOPE_ONLY_WORKFLOW",
    ),
]


def load(
    db: str | None, ids: list[str] | None, *, workflow: str | None, limit: int | None
) -> "list[Run]":
    """The runs named, in that order, each once; else those stored, the newest first.

    Raises:
        UsageError: there is no such run, or none at all.
    """
    from hopscope.runtime.errors import UsageError
    from hopscope.store.store import Store

    with Store.open(db, create=False) as store:
        if ids:
            found = {run.id: run for run in map(store.load, ids)}
            return list(found.values())
        summaries = store.runs(limit=limit, workflow=workflow)
        if not summaries:
            of = f" of workflow {workflow}" if workflow else ""
            raise UsageError(f"no runs{of} in {store.name} yet: make one with `hopscope run`")
        return [store.load(summary.id) for summary in summaries]
