"""The group of the commands of `hopscope budget`."""

import typer

from hopscope.cli.commands.budget.allocate import allocate
from hopscope.cli.commands.budget.check import check
from hopscope.cli.commands.budget.explain import explain
from hopscope.cli.commands.budget.fit import fit
from hopscope.cli.commands.budget.frontier import frontier

app = typer.Typer(
    help="Explain retrieval decisions, learn policies and divide a budget.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """Explain retrieval decisions, learn policies and divide a budget."""


for each in (explain, fit, frontier, check, allocate):
    app.command(each.__name__)(each)
