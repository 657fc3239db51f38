"""`hopscope report`: a run or an experiment as one file to send."""

from pathlib import Path
from typing import Annotated

import typer

from hopscope.api import stored
from hopscope.api.views import render
from hopscope.cli.options import written
from hopscope.cli.options.help import PLACES
from hopscope.cli.options.places import Database


def report(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|EXP", help="A run's id, its beginning or last; or an experiment's name."
        ),
    ] = stored.LAST,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            envvar="HOPSCOPE_REPORT_OUT",
            help="The file.",
            rich_help_panel=PLACES,
        ),
    ] = Path("report.html"),
    overwrite: written.Overwrite = False,
    db: Database = None,
) -> None:
    """Write a run or an experiment as one page with pictures and tables.

    The page loads nothing from elsewhere. Needs the extra view: pip install 'hopscope[view]'.
    """
    from hopscope.runtime.errors import UsageError
    from hopscope.store.store import Store
    from hopscope.view.report import report as page

    if out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--out {out}: a report is a page, so the name must end in .html")
    written.check_folder(out)
    written.check_free([out], overwrite=overwrite)
    with Store.open(db, create=False, reading=True) as store:
        text = page(store, source)
    out.write_text(text, encoding="utf-8")
    render.note(f"{out}: {render.size(len(text.encode()))}")
