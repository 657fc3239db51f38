"""`hopscope credit`: what the steps of a stored run, or their passages, were worth, by other rules,
meters or counterfactuals than it was appraised with."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.cli import credit_table, render, stored, wiring
from hopscope.cli import measuring_options as of
from hopscope.cli.appraise import Appraised, Appraiser
from hopscope.cli.credit_games import Against, Mode, Over
from hopscope.cli.credit_runs import Crediting, Creditings, Given
from hopscope.cli.run import Database, Json, ThinkingSpec, TraceContent, TraceFile
from hopscope.cli.show import LAST

if TYPE_CHECKING:
    from hopscope.runtime.types import Run

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
    corpus: Annotated[
        str | None,
        typer.Option(
            "--corpus",
            metavar="CORPUS",
            help="What to draw from; by default what the experiment searched, else hopland.",
            envvar="HOPSCOPE_CORPUS",
        ),
    ] = None,
    reader: Annotated[
        str | None,
        typer.Option(
            "--reader",
            metavar="READER",
            help="Who measures; by default the reader of the experiment, else tiny.",
            envvar="HOPSCOPE_READER",
        ),
    ] = None,
    thinking: ThinkingSpec = None,
    entailment: Annotated[
        str | None,
        typer.Option(
            "--entailment",
            metavar="ENTAILMENT",
            help="What decides that two answers mean the same; by default the experiment's, or the "
            "embedded one that the run was first measured with, else lexical.",
            envvar="HOPSCOPE_ENTAILMENT",
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Answers sampled for each belief; by default as many as when the run, or its "
            "experiment, was first measured.",
            envvar="HOPSCOPE_SAMPLES",
        ),
    ] = None,
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
    each: Annotated[
        bool,
        typer.Option(
            "--each",
            help="Print the tables of every run of an experiment, too, not the means only.",
            envvar="HOPSCOPE_CREDIT_EACH",
        ),
    ] = False,
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

    Runs are measured with the samples, models and options that they or their experiment were made
    with, unless others are given; of an experiment the means are printed.

    The workflows are not run again, except by --mode replay. The credits are kept beside a run's
    earlier ones, as soon as it is measured. Of experiments only what is missing is measured, so
    that the same command goes on where it stopped. A run that cannot be measured is told and left
    out, and the exit code is 1.
    """
    given = Given(
        rules=of.rules(rule) if rule else None,
        meters=of.meters(meter) if meter else None,
        corpus=corpus,
        reader=reader,
        thinking=thinking,
        entailment=entailment,
        samples=samples,
        seed=seed,
        options=wiring.parse_pairs(option or wiring.lines("HOPSCOPE_METER_OPTIONS")),
        counterfactual=counterfactual,
        mode=mode,
        over=over,
        golds=tuple(gold or wiring.lines("HOPSCOPE_CREDIT_GOLD")),
    )
    if not _credit(
        runs or [LAST],
        given,
        db=db,
        trace_file=trace_file,
        trace_content=trace_content,
        json=json,
        each=each,
        again=again,
    ):
        raise typer.Exit(1)


def _credit(
    specs: Sequence[str],
    given: Given,
    *,
    db: str | None,
    trace_file: Path | None,
    trace_content: bool,
    json: bool,
    each: bool,
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

    before = 0
    measured: list[tuple[str, Run, Appraised]] = []
    with Store.open(db, create=False) as store:
        ids = stored.ids(store, specs)
        if given.golds and len(ids) > 1:
            raise UsageError("--gold is the answer to one question: name one run")
        several = any(ids.values())
        creditings = Creditings(store, given)
        try:
            for number, (run_id, arm) in enumerate(ids.items(), start=1):
                if len(ids) > 1:
                    render.progress(f"run {number} of {len(ids)}")
                crediting = creditings.of(run_id, arm)
                try:
                    run = store.load(run_id)
                    known = crediting.known(store, run) if arm and not again else None
                    before += known is not None
                    found = known or crediting.credit(run)
                    if known is None:
                        store.save_credits(found.credits, [found.appraisal])
                except HopscopeError as error:
                    if len(ids) == 1:
                        raise
                    render.note(f"run {run_id[:12]} is not measured: {error}")
                    continue
                measured.append((arm.label if arm else run.workflow, run, found))
                with telemetry(trace_file, warn=render.note):
                    capture = trace_content and captures_content()
                    emit(run, found.credits, capture=capture)
                render.progress("")
                if json or each or not several:
                    credit_table.show(run, found, json=json)
                    _say_missing(found, run, crediting, explain=bool(given.rules or given.meters))
        except KeyboardInterrupt:
            so_far = f"{len(measured)} of {len(ids)} runs are measured, " if len(ids) > 1 else ""
            render.note(f"stopped: {so_far}the run has the credits it had")
            raise typer.Exit(130) from None
    if several and measured and not json:
        credit_table.show_means(measured)
    if before:
        render.note(
            f"{before} of {len(ids)} runs had been measured in this way and are shown as they are "
            "stored: --again measures them, too"
        )
    return len(measured) == len(ids)


def _say_missing(found: Appraised, run: "Run", crediting: Crediting, *, explain: bool) -> None:
    if not found.credits:
        render.note("no step brought a passage that a model was shown: there is nothing to share")
    elif explain:
        _tell_missing(found, crediting.appraiser(run.seed))


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
