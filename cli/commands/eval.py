"""`hopscope eval`: a whole dataset by one or more workflows, resumable, each question once."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api import parts
from hopscope.api.views import render
from hopscope.cli.options import code_options
from hopscope.cli.options import measuring as measuring
from hopscope.cli.options import spending as of
from hopscope.cli.options.help import PLACES, PROCESSING, SELECTION
from hopscope.cli.options.measuring import Samples, Seed
from hopscope.cli.options.models import (
    CorpusSpec,
    Depth,
    EntailmentSpec,
    Options,
    ReaderSpec,
    ThinkingSpec,
)
from hopscope.cli.options.places import Database, Json, TraceContent
from hopscope.cli.options.sample import Order
from hopscope.runtime.texts.literals import whole_number

if TYPE_CHECKING:
    from hopscope.lab.experiments.planning import ExperimentPlan

AUTO = "auto"


class Where(StrEnum):
    """The place of the workers."""

    local = "local"
    ray = "ray"


Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="The questions: a file of HotpotQA, 2WikiMultiHopQA, MuSiQue, FlashRAG, MS MARCO, "
        "TREC (queries or topics) or Hopscope's own format, or hopland:dev, hopland:test.",
        envvar="HOPSCOPE_EVAL_DATA",
    ),
]
Workflows = Annotated[
    list[str] | None,
    code_options.component(
        "--workflow",
        "-w",
        metavar="NAME",
        help="A workflow, with options as in ircot:k=3; repeat to compare several. By default "
        "ircot. [env var: HOPSCOPE_WORKFLOWS, one a line]",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="EXP",
        help="The experiment's name; by default that of the data. The same command resumes it.",
        envvar="HOPSCOPE_EXPERIMENT",
        rich_help_panel=PLACES,
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="EXP",
        help="Repeat this experiment with all its settings under another --name.",
        envvar="HOPSCOPE_EVAL_FROM",
        rich_help_panel=PLACES,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Ask only the first N questions by --order; a larger N later adds more.",
        envvar="HOPSCOPE_EVAL_LIMIT",
        rich_help_panel=SELECTION,
    ),
]
OrderName = Annotated[
    Order | None,
    typer.Option(
        "--order",
        help="stratified: random, with each kind and number of hops in proportion, the same for "
        "the same questions. file: the order of the file. By default stratified, or the "
        "experiment's own.",
        envvar="HOPSCOPE_EVAL_ORDER",
        rich_help_panel=SELECTION,
    ),
]
SampleIds = Annotated[
    list[str] | None,
    typer.Option(
        "--sample-id",
        metavar="ID",
        help="Ask only the question with this id; repeatable. [env var: HOPSCOPE_SAMPLE_IDS, one "
        "a line]",
        rich_help_panel=SELECTION,
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        min=1,
        help="Worker processes, each with its own reader.",
        envvar="HOPSCOPE_WORKERS",
        rich_help_panel=PROCESSING,
    ),
]
Threads = Annotated[
    str,
    typer.Option(
        metavar="N|auto",
        help="Questions each worker processes concurrently; their requests to a local model share "
        "passes. auto: up to 64 with a local model, 8 with a server, fewer if questions or memory "
        "are few.",
        envvar="HOPSCOPE_THREADS",
        rich_help_panel=PROCESSING,
    ),
]
ExecutorName = Annotated[
    Where,
    typer.Option(
        help="Run workers as processes of this machine, or as actors of a Ray cluster.",
        envvar="HOPSCOPE_EXECUTOR",
        rich_help_panel=PROCESSING,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="The Ray cluster; by default a temporary one on this machine.",
        envvar="HOPSCOPE_RAY_ADDRESS",
        rich_help_panel=PROCESSING,
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed",
        help="Retry failed items.",
        envvar="HOPSCOPE_RETRY_FAILED",
        rich_help_panel=PROCESSING,
    ),
]
Deterministic = Annotated[
    bool,
    typer.Option(
        "--deterministic",
        help="Compute each row alone: the same seed gives the same result to the last digit, in "
        "half precision too; slower.",
        envvar="HOPSCOPE_DETERMINISTIC",
        rich_help_panel=PROCESSING,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Check all settings and estimate the cost from a few questions; store nothing.",
        envvar="HOPSCOPE_DRY_RUN",
        rich_help_panel=PROCESSING,
    ),
]

OF_THIS_COMMAND = frozenset(
    {
        "name",
        "from_",
        "file",
        "workers",
        "threads",
        "executor",
        "address",
        "retry_failed",
        "dry_run",
        "trace_content",
        "db",
        "json",
    }
)
"""Parameters of the command itself, which are no settings of the experiment."""
SHORT = {"data": "DATA", "k": "-k", "option": "-o"}
"""The command-line names of parameters without a long option."""


def eval_command(
    context: typer.Context,
    data: Data = None,
    workflow: Workflows = None,
    name: Name = None,
    from_: From = None,
    file: code_options.Files = None,
    corpus: CorpusSpec = parts.HOPLAND,
    reader: ReaderSpec = parts.TINY,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    k: Depth = None,
    option: Options = None,
    meter: measuring.MetersOrNone = None,
    rule: measuring.Rules = None,
    preset: measuring.Presets = None,
    prompts: measuring.Prompts = None,
    samples: Samples = 10,
    seed: Seed = 0,
    order: OrderName = None,
    limit: Limit = None,
    sample_id: SampleIds = None,
    workers: Workers = 1,
    threads: Threads = AUTO,
    executor: ExecutorName = Where.local,
    address: Address = None,
    retry_failed: RetryFailed = False,
    deterministic: Deterministic = False,
    policy: of.PolicySpec = parts.NATIVE,
    max_tokens: of.MaxTokens = None,
    max_calls: of.MaxCalls = None,
    max_retrievals: of.MaxRetrievals = None,
    max_seconds: of.MaxSeconds = None,
    max_cost: of.MaxCost = None,
    prices: of.PricesFile = None,
    dry_run: DryRun = False,
    trace_content: TraceContent = True,
    db: Database = None,
    json: Json = False,
) -> None:
    """Answer a dataset by one or more workflows and measure every step.

    Finished items are kept: the same command resumes.
    """
    reader = parts.thoughtful(reader, thinking)
    from hopscope.api import retrieval
    from hopscope.api.presets import Presets
    from hopscope.api.spending import Spending
    from hopscope.cli.commands import _evaluation as evaluation
    from hopscope.lab.experiments import planning
    from hopscope.lab.experiments.execution import Workers
    from hopscope.runtime import specs
    from hopscope.runtime.budget.ledger import Limits

    options = evaluation.Execution(
        Workers(workers, _at_once(threads), on_ray=executor is Where.ray, address=address),
        retry_failed,
        dry_run,
        db,
        json,
        prices=prices,
        trace_content=trace_content,
    )
    plan: planning.ExperimentPlan | None = None
    try:
        if from_ is not None:
            _check_alone(context)
            plan = planning.repeat(from_, name=name, db=db)
        else:
            if data is None:
                raise typer.BadParameter("name a file of questions", param_hint="DATA")
            plan = planning.resolve(
                data,
                named=workflow or code_options.lines("HOPSCOPE_WORKFLOWS") or ["ircot"],
                options=specs.pairs(option or code_options.lines("HOPSCOPE_OPTIONS")),
                presets=Presets.named(
                    measuring.presets(preset), prompts or parts.prompts_of(reader)
                ),
                name=name,
                corpus=corpus,
                k=k,
                reader=reader,
                entailment=entailment,
                meters=measuring.meters(meter),
                rules=measuring.rules(rule),
                samples=samples,
                seed=seed,
                order=None if order is None else order.value,
                limit=limit,
                sample_ids=tuple(sample_id or parts.lines("HOPSCOPE_SAMPLE_IDS")),
                deterministic=deterministic,
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
            )
            if prompts:
                _note_unused(prompts, plan)
            if parts.embedded(reader) and not retrieval.embedded_only(retrieval.parse(corpus)):
                render.note(parts.NO_MODEL_FOR_REAL_TEXT)
        code = evaluation.execute(plan, options)
    except KeyboardInterrupt:
        if dry_run or plan is None or not planning.is_stored(plan.name, db):
            render.note("stopped before the experiment began: nothing is kept")
        else:
            render.note("stopped: finished items are kept; the same command resumes")
        code = 130
    raise typer.Exit(code)


def _at_once(threads: str) -> int | None:
    """The number of an option; None for `auto`."""
    if threads == AUTO:
        return None
    number = whole_number(threads)
    if number is None or number < 1:
        raise typer.BadParameter(f"{threads}: give 1 or more, or {AUTO}", param_hint="--threads")
    return number


def _check_alone(context: typer.Context) -> None:
    """Raises UsageError if settings are given beside the experiment that has them all."""
    from hopscope.runtime.errors import UsageError

    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in OF_THIS_COMMAND and source is not None and source.name == "COMMANDLINE":
            flag = SHORT.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{flag} does not go with --from, which repeats what was asked for")


def _note_unused(prompts: str, plan: "ExperimentPlan") -> None:
    """Tell of the workflows that the prompts change nothing for, but for those that name others."""
    from hopscope.api.presets import unused_prompts
    from hopscope.runtime.prompting import loading

    name = loading.load(prompts).name
    options = [(arm.workflow, arm.settings["options"]) for arm in plan.arms]
    with_them = [w for w, own in options if isinstance(own, dict) and own.get("prompts") == name]
    for workflow in dict.fromkeys(with_them):
        if idle := unused_prompts.told(prompts, workflow):
            render.note(idle)
