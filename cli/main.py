"""The `hopscope` command: mounts the commands and turns errors into messages and exit codes.

Data goes to stdout, progress and messages to stderr. Exit codes: 0 all right, 1 something
failed, 2 the command was used wrongly, 130 stopped by Ctrl-C. Nothing heavy is imported until
a command needs it.
"""

import gc
import sys
from typing import Annotated

import typer

from hopscope import __version__
from hopscope.cli import (
    budget,
    compare,
    credit,
    db,
    demo,
    doctor,
    eor,
    erag,
    errors,
    export,
    index,
    lab,
    listing,
    resume,
    run,
    score,
    show,
)
from hopscope.cli.eval import eval_command

app = typer.Typer(
    name="hopscope",
    help="Multi-step RAG workflows that tell what each retrieval was worth.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("run")(run.run_command)
app.command("resume")(resume.resume)
app.command("eval")(eval_command)
app.command("show")(show.show)
app.command("credit")(credit.credit)
app.command("ls")(show.ls)
app.command("score")(score.score)
app.command("errors")(errors.errors)
app.command("erag")(erag.erag)
app.command("compare")(compare.compare)
app.command("list")(listing.list_components)
app.command("doctor")(doctor.doctor)
app.add_typer(index.app, name="index")
app.add_typer(budget.app, name="budget")
app.add_typer(db.app, name="db")
app.add_typer(export.app, name="export")
app.add_typer(eor.app, name="eor")
app.add_typer(lab.app, name="lab")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hopscope {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Multi-step RAG workflows that tell what each retrieval was worth."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code; our errors become one message on stderr."""
    from hopscope.runtime.errors import HopscopeError, UsageError

    # Imports make nothing that could be freed: looking for it as often as usual takes a fifth of
    # the time to start.
    gc.set_threshold(50_000)
    try:
        app(arguments)
    except HopscopeError as error:
        print(f"hopscope: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)
