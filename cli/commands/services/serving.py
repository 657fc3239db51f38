"""`hopscope serve`: servers for other programs."""

import secrets
from typing import Annotated

import typer

from hopscope.api.views import render
from hopscope.cli.options.help import OTHERS
from hopscope.cli.options.places import TraceContent, TraceFile

app = typer.Typer(help="Serve an index to other programs.", no_args_is_help=True)

LOCAL = "127.0.0.1"
ON_THIS_COMPUTER = (LOCAL, "localhost", "::1")


@app.callback()
def serve() -> None:
    """Serve an index to other programs."""


@app.command("search")
def search(
    index: Annotated[
        str,
        typer.Argument(
            metavar="INDEX",
            envvar="HOPSCOPE_SERVE_INDEX",
            help="The folder of an index, or a retriever (docs/workflows.md).",
        ),
    ],
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            envvar="HOPSCOPE_SERVE_HOST",
            help="The address to listen at. Another than this computer's needs a token.",
            rich_help_panel=OTHERS,
        ),
    ] = LOCAL,
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            envvar="HOPSCOPE_SERVE_PORT",
            help="The port; 0 takes any free one.",
            rich_help_panel=OTHERS,
        ),
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TEXT",
            envvar="HOPSCOPE_SERVE_TOKEN",
            help="The token of requests; by default a new one is printed where it is needed.",
            rich_help_panel=OTHERS,
        ),
    ] = None,
    k: Annotated[
        int,
        typer.Option(
            "-k",
            min=1,
            envvar="HOPSCOPE_SERVE_K",
            help="Passages of a search that does not say how many.",
            rich_help_panel=OTHERS,
        ),
    ] = 3,
    trace_file: TraceFile = None,
    trace_content: TraceContent = True,
) -> None:
    """Answer Search-R1's POST /retrieve and MCP's tool search, until Ctrl-C.

    Needs the extra serve: pip install 'hopscope[serve]'.
    """
    from hopscope.api import parts, retrieval
    from hopscope.api.searching.batching import Batches
    from hopscope.api.searching.server import application
    from hopscope.runtime.errors import MissingExtraError
    from hopscope.tracing.spans.telemetry import captures_content, telemetry
    from hopscope.view.server.guarding import names
    from hopscope.view.server.serving import listen

    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("the search server", "serve") from None
    retriever = retrieval.searcher(retrieval.parse(index), parts.TINY)
    if not token and host not in ON_THIS_COMPUTER:
        token = secrets.token_urlsafe(24)
        render.note(f"each request needs the header  Authorization: Bearer {token}")
    with telemetry(trace_file), listen(host, port) as place:
        batches = Batches(retriever, capture=trace_content and captures_content())
        served = application(batches, hosts=names(host, place.port), token=token, k=k)
        render.note(f"{retriever.name} is served at http://{place.name} (Ctrl-C ends it)")
        settings = uvicorn.Config(
            served, log_level="warning", access_log=False, server_header=False, ws="none"
        )
        uvicorn.Server(settings).run(sockets=[place.socket])
        batches.close()
