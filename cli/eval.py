"""`hopscope eval`: a whole dataset by one or more workflows, resumable, each question once."""

from enum import StrEnum
from typing import Annotated

import typer

from hopscope.cli import measuring_options as measuring
from hopscope.cli import render, wiring
from hopscope.cli import spending_options as of
from hopscope.cli.run import (
    CorpusSpec,
    Database,
    Depth,
    EntailmentSpec,
    Json,
    Options,
    ReaderSpec,
    Samples,
    Seed,
    ThinkingSpec,
)


class Where(StrEnum):
    """Where workers are."""

    local = "local"
    ray = "ray"


class Order(StrEnum):
    stratified = "stratified"
    file = "file"


Data = Annotated[
    str | None,
    typer.Argument(
        metavar="[DATA]",
        help="Questions: a .jsonl or .json file of HotpotQA, 2WikiMultiHopQA, MuSiQue, FlashRAG or "
        "our own form, or hopland:dev, hopland:test.",
        envvar="HOPSCOPE_EVAL_DATA",
    ),
]
Workflows = Annotated[
    list[str] | None,
    typer.Option(
        "--workflow",
        "-w",
        metavar="W[:KEY=VALUE,...]",
        help="How to answer them, with options of its own; repeat to compare. By default ircot. "
        "[env var: HOPSCOPE_WORKFLOWS, one a line]",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="EXP",
        help="What the experiment is called; that of the data by default. The same command goes on "
        "with it.",
        envvar="HOPSCOPE_EXPERIMENT",
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="EXP",
        help="Repeat that experiment, with all its settings, under another --name.",
        envvar="HOPSCOPE_EVAL_FROM",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Ask N questions only, the first by --order; a larger N later adds to them.",
        envvar="HOPSCOPE_EVAL_LIMIT",
    ),
]
OrderName = Annotated[
    Order | None,
    typer.Option(
        "--order",
        help="stratified: drawn at random, each kind and number of hops with its share in every "
        "beginning, always the same for the same questions. file: as they stand there. By default "
        "stratified, or as the experiment was begun.",
        envvar="HOPSCOPE_EVAL_ORDER",
    ),
]
SampleIds = Annotated[
    list[str] | None,
    typer.Option(
        "--sample-id",
        metavar="ID",
        help="Ask only the question of this id; repeatable. [env var: HOPSCOPE_SAMPLE_IDS, one a "
        "line]",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        min=1, help="Processes, each with a reader of its own.", envvar="HOPSCOPE_WORKERS"
    ),
]
Threads = Annotated[
    int,
    typer.Option(
        min=1,
        help="Questions that each worker is at at a time; what they ask of the reader is computed "
        "together.",
        envvar="HOPSCOPE_THREADS",
    ),
]
ExecutorName = Annotated[
    Where,
    typer.Option(
        help="Where they run: processes of this machine, or actors of a Ray cluster.",
        envvar="HOPSCOPE_EXECUTOR",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="The Ray cluster; by default one of this machine is made for the time.",
        envvar="HOPSCOPE_RAY_ADDRESS",
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed", help="Try again what failed before.", envvar="HOPSCOPE_RETRY_FAILED"
    ),
]
Deterministic = Annotated[
    bool,
    typer.Option(
        "--deterministic",
        help="Compute each row alone, so that the same seed gives the same to the last digit, in "
        "half precision, too; slower.",
        envvar="HOPSCOPE_DETERMINISTIC",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Check everything and tell what it will cost, going by a few questions.",
        envvar="HOPSCOPE_DRY_RUN",
    ),
]

OF_THIS_GO = frozenset(
    {
        "name",
        "from_",
        "workers",
        "threads",
        "executor",
        "address",
        "retry_failed",
        "dry_run",
        "db",
        "json",
    }
)
"""Parameters that are not settings of the experiment."""
SHORT = {"data": "DATA", "k": "-k", "option": "-o"}
"""What those parameters are called that have no long name."""


def eval_command(
    context: typer.Context,
    data: Data = None,
    workflow: Workflows = None,
    name: Name = None,
    from_: From = None,
    corpus: CorpusSpec = wiring.HOPLAND,
    reader: ReaderSpec = wiring.TINY,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    k: Depth = None,
    option: Options = None,
    meter: measuring.MetersOrNone = None,
    rule: measuring.Rules = None,
    samples: Samples = 10,
    seed: Seed = 0,
    order: OrderName = None,
    limit: Limit = None,
    sample_id: SampleIds = None,
    workers: Workers = 1,
    threads: Threads = 1,
    executor: ExecutorName = Where.local,
    address: Address = None,
    retry_failed: RetryFailed = False,
    deterministic: Deterministic = False,
    policy: of.PolicySpec = of.NATIVE,
    max_tokens: of.MaxTokens = None,
    max_calls: of.MaxCalls = None,
    max_retrievals: of.MaxRetrievals = None,
    max_seconds: of.MaxSeconds = None,
    max_cost: of.MaxCost = None,
    prices: of.PricesFile = None,
    dry_run: DryRun = False,
    db: Database = None,
    json: Json = False,
) -> None:
    """Answer all questions of a dataset by one or more workflows and measure every step. What is
    done is kept: the same command goes on where it stopped."""
    reader = wiring.thoughtful(reader, thinking)
    from hopscope.cli import evaluation, retrieval
    from hopscope.cli.spending import Spending
    from hopscope.runtime.ledger import Limits

    go = evaluation.Go(
        workers,
        retry_failed,
        dry_run,
        db,
        json,
        on_ray=executor is Where.ray,
        address=address,
        prices=prices,
        threads=threads,
    )
    try:
        if from_ is not None:
            _check_alone(context)
            asked = evaluation.again(from_, name=name, db=db)
        else:
            if data is None:
                raise typer.BadParameter("name a file of questions", param_hint="DATA")
            asked = evaluation.resolve(
                data,
                named=workflow or wiring.lines("HOPSCOPE_WORKFLOWS") or ["ircot"],
                options=wiring.parse_pairs(option or wiring.lines("HOPSCOPE_OPTIONS")),
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
                sample_ids=tuple(sample_id or wiring.lines("HOPSCOPE_SAMPLE_IDS")),
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
            if reader == wiring.TINY and not retrieval.embedded_only(corpus):
                render.note(wiring.NO_MODEL_FOR_REAL_TEXT)
        code = evaluation.execute(asked, go)
    except KeyboardInterrupt:
        render.note("stopped: what was done is kept; the same command goes on with the rest")
        code = 130
    raise typer.Exit(code)


def _check_alone(context: typer.Context) -> None:
    """Raises UsageError if settings are given beside the experiment that has them all."""
    from hopscope.runtime.errors import UsageError

    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in OF_THIS_GO and source is not None and source.name == "COMMANDLINE":
            flag = SHORT.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{flag} does not go with --from, which repeats what was asked for")
