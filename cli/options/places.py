"""The options that say where results are kept and how they are printed."""

from pathlib import Path
from typing import Annotated

import typer

from hopscope.api.views import render
from hopscope.cli.options.help import PLACES

Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="FILE",
        help="The database: a file or a postgresql:// URL; by default a file in the user's data "
        "folder.",
        envvar="HOPSCOPE_DB",
        rich_help_panel=PLACES,
    ),
]
TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace-file",
        metavar="FILE",
        help="Append the run's spans to this file as OTLP JSON lines.",
        envvar="HOPSCOPE_TRACE_FILE",
        rich_help_panel=PLACES,
    ),
]


def _tell_collector(context: typer.Context, content: bool) -> bool:
    """Say where texts go if the environment alone sends them: it may have been set for others."""
    from hopscope.tracing.spans.telemetry import captures_content, collector

    source = context.get_parameter_source("trace_content")
    asked = source is not None and source.name == "COMMANDLINE"
    silent = asked or not content or context.resilient_parsing
    if not silent and captures_content() and (to := collector()):
        render.note(
            f"OTEL_* variables send questions, prompts, passages and answers to {to}; "
            "--no-trace-content leaves them out"
        )
    return content


TraceContent = Annotated[
    bool,
    typer.Option(
        "--trace-content/--no-trace-content",
        help="Include questions, prompts, passages and answers in spans.",
        envvar="HOPSCOPE_TRACE_CONTENT",
        callback=_tell_collector,
        rich_help_panel=PLACES,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of a table.", envvar="HOPSCOPE_JSON")
]
