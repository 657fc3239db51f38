"""`hopscope demo`: one unseen two-hop question, retrieved step by step, offline."""

from typing import Annotated

import typer

from hopscope.cli import render, wiring
from hopscope.cli.run import (
    Database,
    Json,
    Samples,
    Seed,
    TraceContent,
    TraceFile,
    execute,
)


def demo(
    number: Annotated[
        int,
        typer.Argument(min=1, help="Which of the embedded world's two-hop test questions."),
    ] = 3,
    samples: Samples = 10,
    seed: Seed = 0,
    db: Database = None,
    trace_file: TraceFile = None,
    trace_content: TraceContent = True,
    json: Json = False,
) -> None:
    """Answer a two-hop question of the embedded world and show what each step was worth."""
    from hopscope.lab.hopland import data
    from hopscope.runtime.errors import UsageError

    questions = [q for q in data.questions("test") if q.kind == "chain" and q.hops == 2]
    if number > len(questions):
        raise UsageError(f"there are {len(questions)} two-hop questions, not {number}")
    code = execute(
        questions[number - 1].question,
        workflow="ircot",
        options={},
        corpus=wiring.HOPLAND,
        reader=wiring.TINY,
        entailment="lexical",
        samples=samples,
        seed=seed,
        db=db,
        trace_file=trace_file,
        trace_content=trace_content,
        json=json,
    )
    if not json and not code:
        render.note("the run is stored: `hopscope show` prints it again, `hopscope ls` lists runs")
    raise typer.Exit(code)
