"""`hopscope run`: answer one question, measure each step, store, trace and print the run.

`api.session` does the work, `api.views.run_table` draws the table.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api import parts
from hopscope.api.views import render
from hopscope.cli.options import code_options, measuring
from hopscope.cli.options import spending as of
from hopscope.cli.options.help import MEASURING, MODELS, PLACES
from hopscope.runtime.code_files import shown

if TYPE_CHECKING:
    from hopscope.api.session import Session
    from hopscope.runtime.types import Question

STOPPED = 130
"""The exit code after Ctrl-C."""

QuestionText = Annotated[str, typer.Argument(metavar="QUESTION", help="The question to answer.")]
WorkflowName = Annotated[
    str,
    typer.Option(
        "--workflow",
        "-w",
        metavar="NAME",
        callback=code_options.of_component,
        help="The workflow, with options as in ircot:k=3; see `hopscope list workflows`.",
        envvar="HOPSCOPE_WORKFLOW",
        rich_help_panel=MODELS,
    ),
]
Golds = Annotated[
    list[str] | None,
    typer.Option(
        "--gold",
        metavar="A",
        help="A right answer; repeat for aliases. SePer needs one. [env var: HOPSCOPE_GOLD, one a "
        "line]",
        rich_help_panel=MEASURING,
    ),
]
CorpusSpec = Annotated[
    str,
    typer.Option(
        "--corpus",
        "--retriever",
        metavar="CORPUS",
        callback=code_options.of_component,
        help="The corpus to search: hopland (embedded), the folder of an index, KIND:WHERE, or an "
        "expression such as rrf(bm25:DIR,searxng:URL)@RR@5 (docs/workflows.md).",
        envvar="HOPSCOPE_CORPUS",
        rich_help_panel=MODELS,
    ),
]
ReaderSpec = Annotated[
    str,
    typer.Option(
        "--reader",
        metavar="READER",
        callback=code_options.of_component,
        help="The reader: tiny (embedded, knows Hopland only), hf:MODEL (a folder or a hub id), "
        "vllm:MODEL, or openai:URL#MODEL for a server; options follow after commas "
        "(docs/readers.md).",
        envvar="HOPSCOPE_READER",
        rich_help_panel=MODELS,
    ),
]
ThinkingSpec = Annotated[
    str | None,
    typer.Option(
        "--thinking",
        metavar="MODE",
        help="Thinking of a reasoning model before it answers: on, off, auto (the default of its "
        "chat template), or the maximum number of tokens.",
        envvar="HOPSCOPE_THINKING",
        rich_help_panel=MODELS,
    ),
]
EntailmentSpec = Annotated[
    str,
    typer.Option(
        "--entailment",
        metavar="NAME",
        callback=code_options.of_component,
        help="The judge of equal meaning: lexical (short answers), equivalence (embedded, general "
        "text), nli:MODEL, bem:MODEL or judge:READER.",
        envvar="HOPSCOPE_ENTAILMENT",
        rich_help_panel=MODELS,
    ),
]
Depth = Annotated[
    int | None,
    typer.Option(
        "-k",
        min=1,
        help="Passages per retrieval; short for -o k=N.",
        envvar="HOPSCOPE_K",
        rich_help_panel=MODELS,
    ),
]
Samples = Annotated[
    int,
    typer.Option(
        min=1,
        help="Answers sampled for each belief.",
        envvar="HOPSCOPE_SAMPLES",
        rich_help_panel=MEASURING,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        help="Seed of all sampling.",
        envvar="HOPSCOPE_SEED",
        rich_help_panel=MEASURING,
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        metavar="KEY=VALUE",
        callback=code_options.of_component,
        help="An option of the workflow, or METER.KEY=VALUE of a meter, as in "
        "seper.weight=uniform; repeatable. [env var: HOPSCOPE_OPTIONS, one a line]",
        rich_help_panel=MODELS,
    ),
]
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
TraceContent = Annotated[
    bool,
    typer.Option(
        "--trace-content/--no-trace-content",
        help="Include questions, prompts, passages and answers in spans.",
        envvar="HOPSCOPE_TRACE_CONTENT",
        rich_help_panel=PLACES,
    ),
]
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
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of a table.", envvar="HOPSCOPE_JSON")
]


def run_command(
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
        if str(k) != os.environ.get("HOPSCOPE_K", "").strip():
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
