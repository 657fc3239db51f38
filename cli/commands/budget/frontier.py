"""`hopscope budget frontier`: compare policies at equal cost, or judge a router."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api.views import render
from hopscope.cli.commands.budget import routers
from hopscope.cli.commands.budget.options import ArmName, CachedWeight, Utility, Worth
from hopscope.cli.options import code_options, outcomes
from hopscope.cli.options.help import BUDGET, MEASURING, PLACES
from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.outcomes import CostTexts, ModelName, OutcomeFiles
from hopscope.cli.options.places import Database, Json
from hopscope.cli.options.spending import PricesFile
from hopscope.cli.options.written import Overwrite, check_free
from hopscope.runtime.texts.counting import counted

if TYPE_CHECKING:
    from hopscope.lab.budget.frontier import FrontierComparison
    from hopscope.runtime.budget.prices import Price


class Axis(StrEnum):
    tokens = "tokens"
    retrievals = "retrievals"


def frontier(
    experiment: Annotated[
        str | None,
        typer.Argument(metavar="EXP", help="An experiment's name; not with --outcomes."),
    ] = None,
    given: OutcomeFiles = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="route:FILE",
            help="With --outcomes: the router to judge.",
            envvar="HOPSCOPE_BUDGET_ROUTE",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="SPEC",
            help="With --outcomes: the mean cost at which to compare, UNIT=N, or SET:UNIT=N,... "
            "for sets; by default that of the router's own price.",
            envvar="HOPSCOPE_BUDGET_AT",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    cost: CostTexts = None,
    model: ModelName = None,
    prices: PricesFile = None,
    workflow: ArmName = None,
    utility: Utility = Worth.correctness,
    cached: CachedWeight = 1.0,
    file: code_options.Files = None,
    by: Annotated[
        Axis, typer.Option(help="The cost to save.", envvar="HOPSCOPE_BUDGET_BY")
    ] = Axis.tokens,
    resamples: Annotated[
        int,
        typer.Option(
            min=100,
            help="Bootstrap resamples.",
            envvar="HOPSCOPE_BUDGET_RESAMPLES",
            rich_help_panel=MEASURING,
        ),
    ] = 1000,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE.svg",
            help="Draw the frontiers.",
            envvar="HOPSCOPE_BUDGET_PLOT",
            rich_help_panel=PLACES,
        ),
    ] = None,
    overwrite: Overwrite = False,
    seed: Seed = 0,
    db: Database = None,
    json: Json = False,
) -> None:
    """Compare policies' utility per cost on the runs of an experiment, or judge a router.

    Learned policies are tested on questions that they have not learned from. With --outcomes, the
    router of --policy is compared with each arm, their random mixture and the oracle.
    """
    from hopscope.lab.budget import frontier as fronts
    from hopscope.lab.budget.fit import Fitting
    from hopscope.lab.budget.stored import of_experiment
    from hopscope.lab.budget.sweeps import sweep
    from hopscope.runtime.errors import UsageError

    if experiment and given:
        raise UsageError("give either an experiment or --outcomes FILE")
    files = [] if experiment else outcomes.files(given)
    if files:
        paid = outcomes.price(model, prices)
        _judge(files, policy, at, cost, paid, resamples=resamples, seed=seed, json=json)
        return
    if experiment is None:
        raise UsageError("give an experiment, or --outcomes FILE and --policy route:FILE")
    check_free([plot] if plot else [], overwrite=overwrite)
    found = of_experiment(db, experiment, workflow, utility.value, cached=cached)
    swept = sweep(
        found.paths,
        found.reader,
        fitting=Fitting(seed=seed),
        seed=seed,
        cached=cached,
        progress=render.progress,
    )
    render.progress("resampling")
    compared = swept.compared(by.value, resamples=resamples, seed=seed)
    render.progress("")
    for name, reason in swept.missing.items():
        render.note(f"{name} could not be tried: {reason}")
    if plot is not None:
        _draw(compared, plot, by.value, utility.value)
    if json:
        render.print_json(compared.model_dump(mode="json"))
        return
    out = render.out()
    out.print(fronts.summary(compared, unit=by.value))
    out.print(fronts.grid(compared, unit=by.value))


def _judge(
    files: list[Path],
    policy: str | None,
    at: str | None,
    cost: list[str] | None,
    price: "Price | None",
    *,
    resamples: int,
    seed: int,
    json: bool,
) -> None:
    """Judge a router on outcomes."""
    from hopscope.lab.budget.routing import budgets, judging
    from hopscope.runtime.errors import UsageError
    from hopscope.runtime.specs import Spec
    from hopscope.tracing.learned.files import read
    from hopscope.tracing.learned.route_file import RouteFile

    spec = Spec.parse(policy or "none")
    if spec.name != "route" or not spec.argument:
        raise UsageError("give the router to judge as --policy route:FILE")
    routers.without_options(spec)
    file = read(RouteFile, Path(spec.argument), workflow="", reader="")
    reading = outcomes.Reading(files, file.arms, outcomes.costs(cost), file.unit, price)
    found = reading.outcomes(file)
    render.progress(f"routing {counted(len(found.rows), 'question')}")
    made = judging.judge(
        found,
        file,
        policy=str(spec),
        at=budgets.parse(at, unit=file.unit, option="--at"),
        resamples=resamples,
        seed=seed,
    )
    render.progress("")
    if json:
        render.print_json(made.model_dump(mode="json"))
        return
    out = render.out()
    out.print("\n".join(judging.summary(made)))
    out.print(judging.grid(made))


def _draw(compared: "FrontierComparison", path: Path, unit: str, utility: str) -> None:
    from hopscope.lab.budget.plot import draw
    from hopscope.lab.export.sheets import whole

    with whole(path) as unfinished:
        unfinished.write_text(draw(compared, unit=unit, utility=utility), encoding="utf-8")
