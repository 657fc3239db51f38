"""`hopscope push` and `hopscope pull`: runs go to services of traces, people's labels come back."""

from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api.views import render
from hopscope.cli.options import code_options
from hopscope.cli.options.help import PLACES
from hopscope.cli.options.places import Database, Json
from hopscope.runtime.texts.counting import counted

if TYPE_CHECKING:
    from hopscope.api.pushing.pulling import PullReport
    from hopscope.api.pushing.pushing import PushReport

ServiceSpec = Annotated[
    str,
    typer.Argument(
        metavar="SERVICE",
        callback=code_options.of_component,
        help="A service of `hopscope list services`, with options as in phoenix:project=demo.",
    ),
]
Named = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN|EXP",
        help="Ids of runs or their beginnings, last, or names of experiments.",
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="URL",
        envvar="HOPSCOPE_SERVICE_URL",
        help="The service's address; by default that of its own environment variable. Keys come "
        "from the environment only.",
        rich_help_panel=PLACES,
    ),
]
PLURALS = {
    "trace": ("trace", "traces"),
    "note": ("annotation", "annotations"),
    "experiment": ("experiment", "experiments"),
    "result": ("result", "results"),
}


def push(
    service: ServiceSpec,
    runs: Named,
    to: To = None,
    content: Annotated[
        bool,
        typer.Option(
            "--trace-content/--no-trace-content",
            help="Send questions, prompts, passages and answers.",
            envvar="HOPSCOPE_TRACE_CONTENT",
            rich_help_panel=PLACES,
        ),
    ] = True,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            envvar="HOPSCOPE_PUSH_DRY_RUN",
            help="Send nothing; tell what would be sent.",
        ),
    ] = False,
    db: Database = None,
    json: Json = False,
) -> None:
    """Send runs to a service of traces, with their credits as annotations.

    What is there already is not sent again; what failed is named, and the same command tries it
    again.
    """
    from hopscope.api.pushing.pushing import push as send

    report = send(
        service,
        *runs,
        store=db,
        to=to,
        dry_run=dry_run,
        content=content,
        progress=lambda so_far: render.progress(
            f"{so_far.sent['trace'] + so_far.known['trace']:,} traces"
        ),
    )
    render.progress("")
    if json:
        render.print_json(report.to_dict())
    else:
        _show_push(report)
    for what, why in report.failures:
        render.note(render.plain(f"not sent: {what}: {why}"))
    if report.failed > len(report.failures):
        render.note(f"and {report.failed - len(report.failures):,} more")
    if report.failed:
        raise typer.Exit(1)


def pull(
    service: ServiceSpec,
    runs: Named,
    to: To = None,
    db: Database = None,
    json: Json = False,
) -> None:
    """Store what people said in a service about runs that were sent there.

    Labels, scores and notes are stored with author and time; `hopscope labels` shows them
    beside the credit.
    """
    from hopscope.api.pushing.pulling import pull as fetch

    report = fetch(
        service,
        *runs,
        store=db,
        to=to,
        progress=lambda so_far: render.progress(f"{counted(so_far.runs, 'run')}"),
    )
    render.progress("")
    if json:
        render.print_json(report.to_dict())
    else:
        _show_pull(report)


def _show_push(report: "PushReport") -> None:
    where = _where(report)
    sent = ", ".join(_counted(kind, report.sent[kind]) for kind in PLURALS if report.sent[kind])
    known = ", ".join(_counted(kind, report.known[kind]) for kind in PLURALS if report.known[kind])
    requests = counted(report.requests, "request")
    verb = f"would be sent to {where} in {requests}" if report.dry_run else f"sent to {where}"
    render.say(render.plain(f"{sent or 'nothing'} {verb}"))
    if known:
        render.say(render.plain(f"{known} there already"))
    if report.missing:
        wanted = " and ".join(report.missing)
        render.note(f"{report.address} wants keys before it takes anything: set {wanted}")
    if report.failed:
        render.say(f"{report.failed:,} failed")


def _show_pull(report: "PullReport") -> None:
    render.say(
        render.plain(
            f"{counted(report.found, 'label')} of {counted(report.runs, 'run')} in "
            f"{_where(report)}: {report.new:,} new or changed"
        )
    )
    if report.ambiguous:
        render.say(f"{report.ambiguous:,} on traces of several runs: label the span of a run")


def _where(report: "PushReport | PullReport") -> str:
    project = f", project {report.project}" if report.project else ""
    return f"{report.service} at {report.address}{project}"


def _counted(kind: str, count: int) -> str:
    return counted(count, *PLURALS[kind])
