"""`hopscope run`: answer one question, measure each step, store, trace and print the run.

`api.session` does the work, `api.views.run_table` draws the table.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api import parts
from hopscope.api.views import render
from hopscope.cli.options import code_options, measuring
from hopscope.cli.options import spending as of
from hopscope.cli.options.help import PLACES
from hopscope.cli.options.measuring import Golds, Samples, Seed
from hopscope.cli.options.models import (
    CorpusSpec,
    Depth,
    EntailmentSpec,
    Options,
    ReaderSpec,
    ThinkingSpec,
    WorkflowName,
)
from hopscope.cli.options.places import Database, Json, TraceContent, TraceFile
from hopscope.runtime.code_files import shown

if TYPE_CHECKING:
    from hopscope.api.session import Session
    from hopscope.runtime.types import Question

STOPPED = 130
"""The exit code after Ctrl-C."""

QuestionText = Annotated[str, typer.Argument(metavar="QUESTION", help="The question to answer.")]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Save the state after each step, so that `hopscope resume` can continue.",
        envvar="HOPSCOPE_CHECKPOINT",
        rich_help_panel=PLACES,
    ),
]


def run_command(
    context: typer.Context,
    question: QuestionText,
    workflow: WorkflowName = "ircot",
    gold: Golds = None,
    corpus: CorpusSpec = parts.HOPLAND,
    reader: ReaderSpec = parts.TINY,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    k: Depth = None,
    samples: Samples = 10,
    seed: Seed = 0,
    option: Options = None,
    meter: measuring.MetersOrNone = None,
    rule: measuring.Rules = None,
    preset: measuring.Presets = None,
    prompts: measuring.Prompts = None,
    policy: of.PolicySpec = parts.NATIVE,
    max_tokens: of.MaxTokens = None,
    max_calls: of.MaxCalls = None,
    max_retrievals: of.MaxRetrievals = None,
    max_seconds: of.MaxSeconds = None,
    max_cost: of.MaxCost = None,
    prices: of.PricesFile = None,
    db: Database = None,
    trace_file: TraceFile = None,
    trace_content: TraceContent = True,
    checkpoint: Checkpoint = None,
    json: Json = False,
) -> None:
    """Answer one question and measure the worth of each retrieval."""
    from hopscope.api.presets import unused_prompts
    from hopscope.api.session import Session
    from hopscope.runtime import specs
    from hopscope.runtime.budget.ledger import Limits
    from hopscope.runtime.types import Question

    if not question.strip():
        raise typer.BadParameter("the question is empty", param_hint="QUESTION")
    spec = specs.Spec.parse(workflow, argument=False)
    workflow, own = spec.name, dict(spec.options)
    policy = own.pop("policy", policy)
    options = {**specs.pairs(option or code_options.lines("HOPSCOPE_OPTIONS")), **own}
    if "k" in own:
        k = None
    elif k is not None and not parts.takes(workflow, "k"):
        source = context.get_parameter_source("k")
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"workflow {shown(workflow)} retrieves nothing", param_hint="-k"
            )
        k = None
    session = Session(
        reader=reader,
        retriever=corpus,
        store=db,
        workflow=workflow,
        entailment=entailment,
        samples=samples,
        seed=seed,
        meters=measuring.meters(meter),
        rules=measuring.rules(rule),
        options=options,
        presets=measuring.presets(preset),
        prompts=prompts,
        policy=policy,
        limits=Limits(
            tokens=max_tokens,
            calls=max_calls,
            retrievals=max_retrievals,
            seconds=max_seconds,
            cost=max_cost,
        ),
        prices=prices,
        thinking=thinking,
        trace_file=trace_file,
        trace_content=trace_content,
    )
    if prompts and "prompts" not in options and (idle := unused_prompts.told(prompts, workflow)):
        render.note(idle)
    asked = Question(text=question, answers=tuple(gold or parts.lines("HOPSCOPE_GOLD")))
    raise typer.Exit(ask(session, asked, k=k, checkpoint=checkpoint, json=json))


def ask(
    session: "Session",
    question: "Question",
    *,
    k: int | None = None,
    checkpoint: Path | None = None,
    run_id: str | None = None,
    json: bool,
) -> int:
    """Ask, print the run, close the session and return the exit code. A `run_id` continues that
    run."""
    from hopscope.api.session import Interrupted

    with session:
        try:
            found = session.ask(question, k=k, checkpoint=checkpoint, run_id=run_id)
            code = 1 if found.problems or found.status != "ok" else 0
        except Interrupted as stop:
            found, code = stop.run, STOPPED
        except KeyboardInterrupt:
            render.note("stopped before the run began: nothing is kept")
            return STOPPED
        render.progress("")
    if json:
        render.print_json(found.to_dict())
    else:
        found.show()
    if checkpoint and found.status != "ok":
        go_on = f"hopscope resume {found.id[:12]} --checkpoint {checkpoint}"
        render.note(f"go on with: {go_on}{code_options.told()}")
    return code
