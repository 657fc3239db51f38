"""`hopscope view`: a local server of pages of stored runs and experiments."""

import secrets
from typing import Annotated

import typer

from hopscope.api.views import render
from hopscope.cli.options.help import OTHERS
from hopscope.cli.options.places import Database

LOCAL = "127.0.0.1"
ON_THIS_COMPUTER = (LOCAL, "localhost", "::1")


def view(
    db: Database = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            envvar="HOPSCOPE_VIEW_HOST",
            help="The address to listen at. Another than this computer's needs a token, which is "
            "printed.",
            rich_help_panel=OTHERS,
        ),
    ] = LOCAL,
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            envvar="HOPSCOPE_VIEW_PORT",
            help="The port; 0 takes any free one.",
            rich_help_panel=OTHERS,
        ),
    ] = 7717,
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only",
            envvar="HOPSCOPE_VIEW_READ_ONLY",
            help="Let nobody label runs.",
            rich_help_panel=OTHERS,
        ),
    ] = False,
) -> None:
    """Serve pages of stored runs and experiments on this computer, until Ctrl-C.

    Needs the extra view: pip install 'hopscope[view]'.
    """
    from hopscope.store.store import Store
    from hopscope.view.server.serving import listen, prepare

    token = None if host in ON_THIS_COMPUTER else secrets.token_urlsafe(24)
    with Store.open(db, create=False, reading=read_only) as store, listen(host, port) as place:
        server = prepare(store, place, token=token, read_only=read_only)
        address = f"http://{place.name}/" + (f"?token={token}" if token else "")
        render.note(f"{store.name} is served at {address} (Ctrl-C ends it)")
        server.run(sockets=[place.socket])
