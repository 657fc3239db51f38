"""`hopscope credit`: what the steps of a stored run, or their passages, were worth, by other rules,
meters or counterfactuals than it was appraised with."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hopscope.cli import credit_table, render, stored, wiring
from hopscope.cli import measuring_options as of
from hopscope.cli.appraise import Appraised, Appraiser
from hopscope.cli.credit_games import Against, Mode, Over
from hopscope.cli.credit_runs import Crediting, Wanted
from hopscope.cli.run import (
    CorpusSpec,
    Database,
    EntailmentSpec,
    Json,
    ReaderSpec,
    Samples,
    ThinkingSpec,
    TraceContent,
    TraceFile,
)
from hopscope.cli.show import LAST

Runs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RUN|EXPERIMENT]...",
        help="Ids of runs or their beginnings, names of experiments; by default the last run.",
    ),
]


def credit(
    runs: Runs = None,
    rule: of.Rules = None,
    meter: of.Meters = None,
    counterfactual: Annotated[
        Against,
        typer.Option(
            help="What is there without it: nothing, random passages, or what others found too.",
            envvar="HOPSCOPE_COUNTERFACTUAL",
        ),
    ] = Against.empty,
    mode: Annotated[
        Mode,
        typer.Option(
            help="frozen: later queries as they were, from the record. replay: run the workflow "
            "again without the step; needs the reader and corpus of the run.",
            envvar="HOPSCOPE_MODE",
        ),
    ] = Mode.frozen,
    over: Annotated[
        Over,
        typer.Option(
            help="Credit each step, or each passage within its step.", envvar="HOPSCOPE_OVER"
        ),
    ] = Over.steps,
    corpus: CorpusSpec = wiring.HOPLAND,
    reader: ReaderSpec = wiring.TINY,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    samples: Samples = 10,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of all sampling; by default the run's.", envvar="HOPSCOPE_SEED"),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            metavar="NAME.KEY=VALUE",
            help="An option of a meter or rule, as in seper.weight=uniform; repeatable. "
            "`hopscope list meters` and `list credit` print them. "
            "[env var: HOPSCOPE_METER_OPTIONS, one a line]",
        ),
    ] = None,
    gold: Annotated[
        list[str] | None,
        typer.Option(
            "--gold",
            metavar="A",
            help="A right answer to measure against, of a single run; repeat for aliases. By "
            "default those that it was asked with. [env var: HOPSCOPE_CREDIT_GOLD, one a line]",
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Measure the runs of experiments also where that was done in the same way before.",
            envvar="HOPSCOPE_CREDIT_AGAIN",
        ),
    ] = False,
    db: Database = None,
    trace_file: TraceFile = None,
    trace_content: TraceContent = True,
    json: Json = False,
) -> None:
    """Share the worth of stored runs among their steps or passages, in any way.

    The workflows are not run again, except by --mode replay. The credits are kept beside a run's
    earlier ones, as soon as it is measured. Of experiments only what is missing is measured, so
    that the same command goes on where it stopped. A run that cannot be measured is told and left
    out, and the exit code is 1.
    """
    reader = wiring.thoughtful(reader, thinking)
    wanted = Wanted(
        rules=of.rules(rule),
        meters=of.meters(meter),
        counterfactual=counterfactual,
        mode=mode,
        over=over,
        corpus=corpus,
        reader=reader,
        entailment=entailment,
        samples=samples,
        seed=seed,
        options=wiring.parse_pairs(option or wiring.lines("HOPSCOPE_METER_OPTIONS")),
        golds=tuple(gold or wiring.lines("HOPSCOPE_CREDIT_GOLD")),
    )
    if not _credit(
        runs or [LAST],
        wanted,
        db=db,
        trace_file=trace_file,
        trace_content=trace_content,
        json=json,
        explain=bool(rule or meter),
        again=again,
    ):
        raise typer.Exit(1)


def _credit(
    specs: Sequence[str],
    wanted: Wanted,
    *,
    db: str | None,
    trace_file: Path | None,
    trace_content: bool,
    json: bool,
    explain: bool,
    again: bool,
) -> bool:
    """Whether all runs could be measured.

    Raises:
        HopscopeError: the only one could not.
    """
    from hopscope.runtime.errors import HopscopeError, UsageError
    from hopscope.store.store import Store
    from hopscope.tracing.evaluators import emit
    from hopscope.tracing.telemetry import captures_content, telemetry

    done = before = 0
    with Store.open(db, create=False) as store:
        ids = stored.ids(store, specs)
        if wanted.golds and len(ids) > 1:
            raise UsageError("--gold is the answer to one question: name one run")
        try:
            crediting = Crediting(wanted)
            for number, (run_id, of_experiment) in enumerate(ids.items(), start=1):
                if len(ids) > 1:
                    render.progress(f"run {number} of {len(ids)}")
                try:
                    found = store.load(run_id)
                    known = crediting.known(store, found) if of_experiment and not again else None
                    before += known is not None
                    measured = known or crediting.credit(found)
                    if known is None:
                        store.save_credits(measured.credits, [measured.appraisal])
                except HopscopeError as error:
                    if len(ids) == 1:
                        raise
                    render.note(f"run {run_id[:12]} is not measured: {error}")
                    continue
                done += 1
                with telemetry(trace_file, warn=render.note):
                    capture = trace_content and captures_content()
                    emit(found, measured.credits, capture=capture)
                render.progress("")
                credit_table.show(found, measured, json=json)
                if not measured.credits:
                    render.note(
                        "no step brought a passage that a model was shown: there is nothing to "
                        "share"
                    )
                elif explain:
                    _tell_missing(measured, crediting.appraiser(found.seed))
        except KeyboardInterrupt:
            so_far = f"{done} of {len(ids)} runs are measured, " if len(ids) > 1 else ""
            render.note(f"stopped: {so_far}the run has the credits it had")
            raise typer.Exit(130) from None
    if before:
        render.note(
            f"{before} of {len(ids)} runs had been measured in this way and are shown as they are "
            "stored: --again measures them, too"
        )
    return done == len(ids)


def _tell_missing(measured: Appraised, appraiser: Appraiser) -> None:
    """GroGU with key tokens has no credit by rules that weigh its value without evidence in."""
    there = {(credit.meter, credit.rule) for credit in measured.credits}
    for meter in appraiser.meters:
        missing = [rule.name for rule in appraiser.rules if (meter.name, rule.name) not in there]
        if missing:
            render.note(
                f"{meter.name} is not shared by {', '.join(missing)}: without documents its key "
                "tokens follow another rule; -o grogu.score=entropy has one rule for both"
            )
