"""`hopscope demo`: one unseen two-hop question, retrieved step by step, offline."""

from typing import Annotated

import typer

from hopscope.api.views import render
from hopscope.cli.commands.run import ask
from hopscope.cli.options.measuring import Samples, Seed
from hopscope.cli.options.places import Database, Json, TraceContent, TraceFile


def demo(
    number: Annotated[
        int,
        typer.Argument(
            metavar="N",
            min=1,
            help="The number of a two-hop test question of the embedded world.",
        ),
    ] = 3,
    samples: Samples = 10,
    seed: Seed = 0,
    db: Database = None,
    trace_file: TraceFile = None,
    trace_content: TraceContent = True,
    json: Json = False,
) -> None:
    """Answer a two-hop question of the embedded world and show the worth of each step."""
    from hopscope.api.session import Session
    from hopscope.runtime.corpora import hopland
    from hopscope.runtime.errors import UsageError

    questions = [q for q in hopland.questions("test") if q.kind == "chain" and q.hops == 2]
    if number > len(questions):
        raise UsageError(f"there are {len(questions)} two-hop questions, not {number}")
    session = Session(
        store=db, samples=samples, seed=seed, trace_file=trace_file, trace_content=trace_content
    )
    code = ask(session, questions[number - 1].question, json=json)
    if not json and not code:
        render.note("the run is stored: `hopscope show` prints it again, `hopscope ls` lists runs")
    raise typer.Exit(code)
