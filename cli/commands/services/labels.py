"""`hopscope labels`: people's labels beside the credit."""

from typing import Annotated

import typer

from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.places import Database, Json
from hopscope.lab.table_forms import terminal


def labels(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|EXP",
            help="Ids of runs or their beginnings, last, or names of experiments.",
        ),
    ],
    seed: Seed = 0,
    db: Database = None,
    json: Json = False,
) -> None:
    """Show people's labels beside the credit, and how well the two agree.

    Agreement is Spearman's rank correlation, with an interval over questions.
    """
    from hopscope.lab import agreement

    terminal.show(agreement.labels(*runs, store=db, seed=seed), "json" if json else None)
