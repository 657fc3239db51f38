"""`hopscope credit`: what the steps of a stored run, or their passages, were worth, by other rules,
meters or counterfactuals than it was appraised with."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopscope.cli import credit_games, credit_table, render, retrieval, wiring
from hopscope.cli.appraise import METERS, RULES, Appraised, Appraiser, Measuring
from hopscope.cli.credit_games import Against, Mode, Over
from hopscope.cli.run import (
    CorpusSpec,
    Database,
    EntailmentSpec,
    Json,
    ReaderSpec,
    Samples,
    TraceContent,
    TraceFile,
)
from hopscope.cli.show import LAST, RunSpec, find

if TYPE_CHECKING:
    from hopscope.tracing.coalitions import Game

ALL = "all"


def credit(
    run: RunSpec = LAST,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="trajectory|solo|leave-one-out|shapley|all",
            help="How the gain is shared; repeatable. By default all but solo.",
            envvar="HOPSCOPE_RULE",
        ),
    ] = None,
    meter: Annotated[
        list[str] | None,
        typer.Option(
            "--meter",
            metavar="seper|seper_hard|grogu",
            help="What is shared; repeatable. By default these three.",
            envvar="HOPSCOPE_METER",
        ),
    ] = None,
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
    db: Database = None,
    trace_file: TraceFile = None,
    trace_content: TraceContent = True,
    json: Json = False,
) -> None:
    """Share the worth of a stored run among its steps or passages, in any way.

    The workflow is not run again, except by --mode replay. The credits are kept beside the run's
    earlier ones.
    """
    try:
        _credit(
            run,
            rules=rule,
            meters=meter,
            counterfactual=counterfactual,
            mode=mode,
            over=over,
            corpus=corpus,
            reader=reader,
            entailment=entailment,
            samples=samples,
            seed=seed,
            options=wiring.parse_pairs(option or wiring.lines("HOPSCOPE_METER_OPTIONS")),
            db=db,
            trace_file=trace_file,
            trace_content=trace_content,
            json=json,
        )
    except KeyboardInterrupt:
        render.note("stopped: the run has the credits it had")
        raise typer.Exit(130) from None


def _credit(
    run: str,
    *,
    rules: Sequence[str] | None,
    meters: Sequence[str] | None,
    counterfactual: Against,
    mode: Mode,
    over: Over,
    corpus: str,
    reader: str,
    entailment: str,
    samples: int,
    seed: int | None,
    options: Mapping[str, str],
    db: str | None,
    trace_file: Path | None,
    trace_content: bool,
    json: bool,
) -> None:
    from hopscope.store.store import Store
    from hopscope.tracing.evaluators import emit
    from hopscope.tracing.telemetry import captures_content, telemetry

    with Store.open(db) as store:
        found = find(store, run)
        measuring = Measuring(
            samples=samples,
            seed=found.seed if seed is None else seed,
            options=options,
            meters=_meters(meters),
            rules=_rules(rules),
        )
        measuring.parse()  # tells what is wrong before anything is loaded
        retrieval.parse(corpus)
        judge = wiring.entailment(entailment)
        render.progress("loading the reader")
        model = wiring.reader(reader)
        if model.name != found.reader and mode is Mode.frozen:
            render.note(f"{model.name} measures what {found.reader or 'another'} has read")
        appraiser = Appraiser(model, judge, measuring)
        retriever = None
        if counterfactual is Against.random or mode is Mode.replay:
            render.progress("loading the corpus")
            retriever = credit_games.corpus(corpus, found, appraiser)
        against = credit_games.against(counterfactual, found, retriever, measuring.seed)
        games: Sequence[Game] = credit_games.games(over, found, against)
        if mode is Mode.replay and retriever is not None:
            games = credit_games.replayed(found, games, against, appraiser, judge, retriever)
        settings: dict[str, Any] = {"counterfactual": counterfactual.value, "mode": mode.value}
        if counterfactual is Against.random and retriever is not None:
            settings["corpus"] = retriever.name
        render.progress("measuring")
        measured = appraiser.appraise(found, games=games, settings=settings)
        store.save_credits(measured.credits, [measured.appraisal])
        with telemetry(trace_file, warn=render.note):
            emit(found, measured.credits, capture=trace_content and captures_content())
        render.progress("")
    credit_table.show(found, measured, json=json)
    if not measured.credits:
        render.note("no step brought a passage that a model was shown: there is nothing to share")
    elif rules or meters:
        _tell_missing(measured, appraiser)


def _meters(given: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(name.replace("-", "_") for name in given or METERS)


def _rules(given: Sequence[str] | None) -> tuple[str, ...]:
    from hopscope.runtime import components
    from hopscope.tracing import credit

    chosen = [name.replace("-", "_") for name in given or RULES]
    return tuple(components.names(credit)) if ALL in chosen else tuple(chosen)


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
