"""`hopscope run`: answer one question, appraise every step, store, trace and print it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.cli import render, retrieval, run_table, wiring
from hopscope.cli import spending_options as of
from hopscope.cli.help import MEASURING, MODELS, PLACES

if TYPE_CHECKING:
    from hopscope.cli.spending import Spending
    from hopscope.runtime.types import Question, Run

QuestionText = Annotated[str, typer.Argument(metavar="QUESTION", help="What to answer.")]
WorkflowName = Annotated[
    str,
    typer.Option(
        "--workflow",
        "-w",
        metavar="W",
        help="How to answer it: see `hopscope list workflows`.",
        envvar="HOPSCOPE_WORKFLOW",
        rich_help_panel=MODELS,
    ),
]
Golds = Annotated[
    list[str] | None,
    typer.Option(
        "--gold",
        metavar="A",
        help="A right answer; repeat for aliases. Without one, SePer is not measured. "
        "[env var: HOPSCOPE_GOLD, one a line]",
    ),
]
CorpusSpec = Annotated[
    str,
    typer.Option(
        "--corpus",
        "--retriever",
        metavar="CORPUS",
        help="What is searched: hopland (embedded), the folder of an index, KIND:WHERE, or an "
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
        help="Who reads: tiny (embedded, knows Hopland only), hf:MODEL (a folder or a hub id), "
        "vllm:MODEL, or openai:URL#MODEL for a server; options after commas (docs/readers.md).",
        envvar="HOPSCOPE_READER",
        rich_help_panel=MODELS,
    ),
]
ThinkingSpec = Annotated[
    str | None,
    typer.Option(
        "--thinking",
        metavar="on|off|auto|TOKENS",
        help="Whether a reasoning model thinks before it answers, and for how many tokens at most; "
        "auto is as its chat template has it by default.",
        envvar="HOPSCOPE_THINKING",
        rich_help_panel=MODELS,
    ),
]
EntailmentSpec = Annotated[
    str,
    typer.Option(
        "--entailment",
        metavar="ENTAILMENT",
        help="What decides that two answers mean the same: lexical (short answers), equivalence "
        "(embedded, general text), nli:MODEL, bem:MODEL or judge:READER.",
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
        help="An option of the workflow, or METER.KEY=VALUE of a meter, as in "
        "seper.weight=uniform; repeatable. [env var: HOPSCOPE_OPTIONS, one a line]",
        rich_help_panel=MODELS,
    ),
]
Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL|FILE",
        help="Where runs are kept; by default a file in the user's data folder.",
        envvar="HOPSCOPE_DB",
        rich_help_panel=PLACES,
    ),
]
TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace-file",
        metavar="FILE",
        help="Append the spans to this file as OTLP JSON lines.",
        envvar="HOPSCOPE_TRACE_FILE",
        rich_help_panel=PLACES,
    ),
]
TraceContent = Annotated[
    bool,
    typer.Option(
        "--trace-content/--no-trace-content",
        help="Whether spans carry questions, prompts, passages and answers.",
        envvar="HOPSCOPE_TRACE_CONTENT",
        rich_help_panel=PLACES,
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Keep the state after each step, so that `hopscope resume` can go on after a break.",
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
    corpus: CorpusSpec = wiring.HOPLAND,
    reader: ReaderSpec = wiring.TINY,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    k: Depth = None,
    samples: Samples = 10,
    seed: Seed = 0,
    option: Options = None,
    policy: of.PolicySpec = of.NATIVE,
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
    """Answer one question and tell what each retrieval was worth."""
    from hopscope.cli.spending import Spending
    from hopscope.runtime.ledger import Limits
    from hopscope.runtime.types import Question

    if not question.strip():
        raise typer.BadParameter("the question is empty", param_hint="QUESTION")
    options = wiring.parse_pairs(option or wiring.lines("HOPSCOPE_OPTIONS"))
    # Those that choose among candidates have a k that says how many to choose.
    if k is None and "k" not in options and not wiring.takes(workflow, "candidates"):
        k = retrieval.size(corpus) if wiring.takes(workflow, "k") else None
    if k is not None and wiring.takes(workflow, "k"):
        options["k"] = str(k)
    elif k is not None and str(k) != os.environ.get("HOPSCOPE_K", "").strip():
        raise typer.BadParameter(f"workflow {workflow} retrieves nothing", param_hint="-k")
    try:
        code = execute(
            Question(text=question, answers=tuple(gold or wiring.lines("HOPSCOPE_GOLD"))),
            workflow=workflow,
            options=options,
            corpus=corpus,
            reader=wiring.thoughtful(reader, thinking),
            entailment=entailment,
            samples=samples,
            seed=seed,
            spend=Spending(
                policy=policy,
                limits=Limits(
                    tokens=max_tokens,
                    calls=max_calls,
                    retrievals=max_retrievals,
                    seconds=max_seconds,
                    cost=max_cost,
                ),
                prices=prices,
            ),
            db=db,
            trace_file=trace_file,
            trace_content=trace_content,
            checkpoint=checkpoint,
            json=json,
        )
    except KeyboardInterrupt:
        render.note("stopped before the run began: nothing is kept")
        code = 130
    raise typer.Exit(code)


EXIT_CODES = {"ok": 0, "failed": 1, "interrupted": 130}


def execute(
    question: "Question",
    *,
    workflow: str,
    options: dict[str, str],
    corpus: str,
    reader: str,
    entailment: str,
    samples: int,
    seed: int,
    db: str | None,
    trace_file: Path | None,
    trace_content: bool,
    json: bool,
    spend: "Spending | None" = None,
    checkpoint: Path | None = None,
    run_id: str | None = None,
) -> int:
    """Run, store, appraise, store the credits, emit the spans, print; the exit code.

    With the `run_id` of a run begun earlier go on with that one.

    The run is in the database before it is appraised, so that nothing of it is lost when the
    appraisal stops; and it is printed even when it could not be stored.
    """
    from hopscope.cli import spending
    from hopscope.cli.appraise import Appraised, Appraiser, Measuring, split
    from hopscope.cli.checkpoints import Settings, opened
    from hopscope.runtime.run import run
    from hopscope.runtime.state import Deps
    from hopscope.store.store import Store
    from hopscope.tracing.evaluators import emit
    from hopscope.tracing.telemetry import captures_content, telemetry

    own, of_meters = split(options)
    built = wiring.workflow(workflow, own)
    measuring = Measuring(samples=samples, seed=seed, options=of_meters)
    measuring.parse()  # tells what is wrong before anything is loaded
    retrieval.parse(corpus)  # likewise, as far as that can be told now
    spend = spend or spending.Spending()
    spending.check(spend.policy)
    judge = wiring.entailment(entailment)
    with (
        opened(checkpoint) as checkpoints,
        Store.open(db) as store,
        telemetry(trace_file, warn=render.note),
    ):
        if checkpoints and run_id is None:
            begun = Settings(
                question=question,
                workflow=workflow,
                options=options,
                corpus=corpus,
                reader=reader,
                entailment=entailment,
                samples=samples,
                seed=seed,
                spend=spend,
            )
            run_id = checkpoints.begin(begun.model_dump_json())
        render.progress("loading the reader")
        model = wiring.reader(reader)
        policy = spending.policy(spend.policy, workflow=workflow, reader_name=model.name)
        ledger = spend.ledger(model.name)
        render.progress("loading the corpus")
        retriever = retrieval.retriever(corpus, model, seed=seed)
        if reader == wiring.TINY and not retrieval.embedded_only(corpus):
            render.note(wiring.NO_MODEL_FOR_REAL_TEXT)
        appraiser = Appraiser(model, judge, measuring)
        deps = Deps(
            reader=model,
            retriever=retriever,
            entailment=judge,
            seed=seed,
            capture_content=trace_content and captures_content(),
            policy=policy,
            ledger=ledger,
        )
        render.progress(f"running {workflow}")
        saver = checkpoints.saver if checkpoints else None
        result = run(built, question, deps, checkpointer=saver, run_id=run_id)
        code = EXIT_CODES[result.status]
        _tell_forced(result)
        measured: list[Appraised] = []
        stored = _tried("stored", lambda: store.save(result))
        if result.steps and result.status != "interrupted":
            render.progress("measuring what each step was worth")

            def measure() -> None:
                measured.append(appraiser.appraise(result))
                emit(result, measured[0].credits, capture=deps.capture_content)

            appraised = _tried("appraised", measure)
            if appraised == 0 and stored == 0:
                [(credits, appraisal)] = measured
                stored = _tried(
                    "stored with its credits", lambda: store.save_credits(credits, [appraisal])
                )
            code = max(code, appraised)
        code = max(code, stored)
        render.progress("")
        retrieval.tell_cut(retriever)
    run_table.show_run(
        result,
        [credit for found in measured for credit in found.credits],
        [found.appraisal for found in measured],
        prices=spend.prices,
        json=json,
    )
    if checkpoint and result.status != "ok":
        render.note(f"go on with: hopscope resume {result.id[:12]} --checkpoint {checkpoint}")
    return code


def _tell_forced(result: "Run") -> None:
    """Remark on thoughts that the reader did not end by itself."""
    replies = [g for step in result.steps for e in step.exchanges for g in e.generations]
    thoughts = [reply.thought for reply in replies if reply.thought is not None]
    forced = sum(thought.end == "forced" for thought in thoughts)
    if forced:
        render.note(
            f"{forced} of {len(thoughts)} thoughts were closed by force, most often at their "
            "limit: --thinking TOKENS raises it"
        )


def _tried(deed: str, action: Callable[[], object]) -> int:
    """Do one thing to a finished run, whose result is worth printing whatever becomes of it; the
    exit code."""
    from hopscope.runtime.errors import HopscopeError

    try:
        action()
    except HopscopeError as error:
        render.note(f"the run is not {deed}: {error}")
        return 1
    except KeyboardInterrupt:
        render.note(f"the run is not {deed}: stopped")
        return 130
    except Exception as error:  # a fault of ours must not cost the run that is there
        told = render.plain(f"{type(error).__name__}: {error}")
        render.note(f"the run is not {deed}: {told}; this is a fault of Hopscope, please report it")
        return 1
    return 0
