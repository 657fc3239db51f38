"""`hopscope credit`: share the worth of stored runs by other rules, meters or counterfactuals."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api import parts, stored
from hopscope.api.credit_games import CounterfactualName, Mode, Over
from hopscope.api.credit_runs import CreditArguments
from hopscope.api.presets import Presets
from hopscope.api.views import credit_table, render
from hopscope.cli.options import code_options
from hopscope.cli.options import measuring as of
from hopscope.cli.options.help import MEASURING
from hopscope.cli.options.models import ThinkingSpec
from hopscope.cli.options.places import Database, Json, TraceContent, TraceFile
from hopscope.cli.options.spending import PricesFile
from hopscope.runtime import specs
from hopscope.runtime.texts.counting import counted
from hopscope.tracing.reports.appraised import Appraised

if TYPE_CHECKING:
    from hopscope.api.creditings import Credited
    from hopscope.runtime.types import Run

Runs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN|EXPERIMENT",
        help="Ids of runs or their beginnings, or names of experiments; by default the last run.",
    ),
]


def credit(
    runs: Runs = None,
    rule: of.Rules = None,
    meter: of.Meters = None,
    preset: of.Presets = None,
    prompts: of.OwnPrompts = None,
    counterfactual: Annotated[
        CounterfactualName,
        typer.Option(
            metavar="NAME",
            help="The stand-in for a missing part: empty (nothing), random (random passages), or "
            "leave-out (passages that others retrieved too).",
            envvar="HOPSCOPE_COUNTERFACTUAL",
            rich_help_panel=MEASURING,
        ),
    ] = CounterfactualName.empty,
    mode: Annotated[
        Mode,
        typer.Option(
            help="frozen keeps later queries as recorded. replay runs the workflow again without "
            "the step, with the run's reader and corpus.",
            envvar="HOPSCOPE_MODE",
            rich_help_panel=MEASURING,
        ),
    ] = Mode.frozen,
    over: Annotated[
        Over,
        typer.Option(
            help="Credit each step, or each passage within its step.",
            envvar="HOPSCOPE_OVER",
            rich_help_panel=MEASURING,
        ),
    ] = Over.steps,
    corpus: Annotated[
        str | None,
        code_options.component(
            "--corpus",
            metavar="CORPUS",
            help="The corpus of replay and random; by default the experiment's, else hopland.",
            envvar="HOPSCOPE_CORPUS",
        ),
    ] = None,
    reader: of.OwnReader = None,
    thinking: ThinkingSpec = None,
    entailment: of.OwnEntailment = None,
    samples: of.OwnSamples = None,
    seed: of.OwnSeed = None,
    option: of.MeterOptions = None,
    gold: Annotated[
        list[str] | None,
        typer.Option(
            "--gold",
            metavar="A",
            help="A right answer for a single run; repeat for aliases. By default the run's own. "
            "[env var: HOPSCOPE_CREDIT_GOLD, one a line]",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="STEP|p:KEY",
            help="Measure a single run without this step, by its number, or this passage, by p: "
            "and its key or title, instead of sharing credit; repeatable.",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    each: Annotated[
        bool,
        typer.Option(
            "--each",
            help="Print the tables of each run of an experiment, not only the means.",
            envvar="HOPSCOPE_CREDIT_EACH",
        ),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            "--credit-budget",
            metavar="calls=N",
            help="Draw at most N replies for each run and meter, leave-one-out first, then where "
            "they narrow the intervals most.",
            envvar="HOPSCOPE_CREDIT_BUDGET",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the calls and their cost; measure nothing."),
    ] = False,
    prices: PricesFile = None,
    file: code_options.Files = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Repeat measurements whose values are stored already.",
            envvar="HOPSCOPE_CREDIT_AGAIN",
        ),
    ] = False,
    db: Database = None,
    trace_file: TraceFile = None,
    trace_content: TraceContent = True,
    json: Json = False,
) -> None:
    """Share the worth of stored runs among their steps or passages.

    By default runs are measured with their own samples, models and options. Experiments print
    means.

    Workflows run again only with --mode replay. New credits are stored beside earlier ones as soon
    as a run is measured. Coalitions whose values are stored are not measured again, unless --again
    is given. Of experiments, only missing measurements are made: the same command resumes. A run
    that cannot be measured is reported and left out, and the exit code is 1.
    """
    given = CreditArguments(
        rules=of.rules(rule) if rule else None,
        meters=of.meters(meter) if meter else None,
        corpus=corpus,
        reader=reader,
        thinking=thinking,
        entailment=entailment,
        samples=samples,
        seed=seed,
        options=specs.pairs(option or code_options.lines("HOPSCOPE_METER_OPTIONS")),
        counterfactual=counterfactual,
        mode=mode,
        over=over,
        golds=tuple(gold or parts.lines("HOPSCOPE_CREDIT_GOLD")),
        presets=Presets.named(of.presets(preset), prompts),
        calls=of.credit_budget(budget) if budget else None,
    )
    if dry_run:
        _plan(runs or [stored.LAST], given, prices, db=db, json=json)
        return
    if without:
        _measure_without(runs or [stored.LAST], given, without, db=db, json=json)
        return
    if not _credit(
        runs or [stored.LAST],
        given,
        db=db,
        trace_file=trace_file,
        trace_content=trace_content,
        json=json,
        each=each,
        again=again,
    ):
        raise typer.Exit(1)


def _plan(
    specs: Sequence[str], given: CreditArguments, prices: Path | None, *, db: str | None, json: bool
) -> None:
    from hopscope.api.creditings import Creditings
    from hopscope.store.store import Store

    with Store.open(db, create=False) as store:
        costs = Creditings(store, given).costs(stored.ids(store, specs), prices)
    render.progress("")
    if json:
        render.print_json(costs.to_dicts())
    else:
        costs.show()


def _measure_without(
    specs: Sequence[str],
    given: CreditArguments,
    names: Sequence[str],
    *,
    db: str | None,
    json: bool,
) -> None:
    from hopscope.api.creditings import Creditings
    from hopscope.runtime.errors import UsageError
    from hopscope.store.store import Store

    with Store.open(db, create=False) as store:
        ids = list(stored.ids(store, specs))
        if len(ids) > 1:
            raise UsageError("--without names parts of one run: name one run")
        answer = Creditings(store, given).without(ids[0], names)
    render.progress("")
    if json:
        render.print_json({"run": ids[0], "without": answer.to_dicts()})
    else:
        answer.show()


def _credit(
    specs: Sequence[str],
    given: CreditArguments,
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
    from hopscope.api.creditings import Creditings
    from hopscope.runtime.errors import UsageError
    from hopscope.store.store import Store
    from hopscope.tracing.spans.evaluators import emit
    from hopscope.tracing.spans.telemetry import captures_content, telemetry

    before = 0
    measured: list[tuple[str, Run, Appraised]] = []
    with Store.open(db, create=False) as store:
        ids = stored.ids(store, specs)
        if given.golds and len(ids) > 1:
            raise UsageError("--gold is the answer to one question: name one run")
        several = any(ids.values())
        explain = bool(given.rules or given.meters)
        try:
            for credited in Creditings(store, given).each(ids, again=again):
                run, found = credited.run, credited.found
                before += credited.known
                measured.append((credited.label, run, found))
                with telemetry(trace_file, warn=render.note):
                    capture = trace_content and captures_content()
                    emit(run, found.credits, capture=capture)
                render.progress("")
                if json or each or not several:
                    credit_table.show(run, found, json=json)
                    _say_missing(credited, explain=explain)
        except KeyboardInterrupt:
            so_far = f"{len(measured)} of {len(ids)} runs are measured, " if len(ids) > 1 else ""
            render.note(f"stopped: {so_far}the run in progress keeps its earlier credits")
            raise typer.Exit(130) from None
    if several and measured and not json:
        credit_table.show_means(measured)
    if before:
        render.note(
            f"{before:,} of {counted(len(ids), 'run already has', 'runs already have')} these "
            "credits, which are shown from the store; --again measures them again"
        )
    return len(measured) == len(ids)


def _say_missing(credited: "Credited", *, explain: bool) -> None:
    if not credited.found.credits:
        render.note("no credits: no step retrieved a passage that a model was shown")
    elif explain:
        for meter, rules in credited.not_shared.items():
            render.note(
                f"no {meter} credit by {', '.join(rules)}: without documents its key tokens "
                "follow another rule; use -o grogu.score=entropy, which has one rule for both"
            )
