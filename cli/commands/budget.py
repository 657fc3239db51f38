"""`hopscope budget`: explain decisions, learn and compare policies, divide a total."""

from datetime import datetime
from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hopscope.api import parts
from hopscope.api.stored import find
from hopscope.api.views import render
from hopscope.cli.commands.show import RunSpec
from hopscope.cli.options import code_options, outcomes
from hopscope.cli.options.help import BUDGET, MEASURING, PLACES, SELECTION
from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.models import ReaderSpec, ThinkingSpec, WorkflowName
from hopscope.cli.options.outcomes import (
    AdaptFile,
    ArmNames,
    CostTexts,
    ModelName,
    Objective,
    ObjectiveName,
    OutcomeFiles,
)
from hopscope.cli.options.places import Database, Json
from hopscope.cli.options.spending import PricesFile
from hopscope.cli.options.written import Overwrite, check_free
from hopscope.runtime.code_files import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hopscope.lab.budget.frontier import FrontierComparison
    from hopscope.lab.budget.outcomes import Outcomes
    from hopscope.lab.budget.promises.checking import Check
    from hopscope.runtime.budget.prices import Price
    from hopscope.runtime.specs import Spec
    from hopscope.tracing.learned.promise import Risk
    from hopscope.tracing.reports.decisions import DecisionOutcome

app = typer.Typer(
    help="Explain retrieval decisions, learn policies and divide a budget.", no_args_is_help=True
)


class PolicyKind(StrEnum):
    value = "value"
    classifier = "classifier"
    tasr = "tasr"
    route = "route"


class Share(StrEnum):
    all = "all"
    set = "set"


class Worth(StrEnum):
    correctness = "correctness"
    seper = "seper"


class Axis(StrEnum):
    tokens = "tokens"
    retrievals = "retrievals"


ExperimentName = Annotated[
    str,
    typer.Argument(metavar="EXP", help="An experiment's name."),
]
ArmName = Annotated[
    str | None,
    typer.Option(
        "--workflow",
        "-w",
        metavar="NAME",
        help="A workflow of the experiment; required if it has several.",
        envvar="HOPSCOPE_BUDGET_ARM",
        rich_help_panel=SELECTION,
    ),
]
Utility = Annotated[
    Worth,
    typer.Option(
        help="The worth of stopping: correctness of the short answer there, or seper, the "
        "measured belief in the right answer.",
        envvar="HOPSCOPE_UTILITY",
        rich_help_panel=MEASURING,
    ),
]


@app.callback()
def _group() -> None:
    """Explain retrieval decisions, learn policies and divide a budget."""


@app.command("explain")
def explain(run: RunSpec = "last", db: Database = None, json: Json = False) -> None:
    """Show each retrieval decision of a run, its reasons and its outcome."""
    from hopscope.store.store import Store
    from hopscope.tracing.reports import decisions
    from hopscope.tracing.reports.appraised import shown_credits

    with Store.open(db, create=False, reading=True) as store:
        found = find(store, run)
        credits = store.credits(found.id)
    rows = decisions.explain(found, shown_credits(credits))
    if json:
        render.print_json([row.model_dump(mode="json") for row in rows])
        return
    render.say(f"{found.id[:12]}  {found.workflow}  ended by {found.stop_reason or found.status}")
    if not rows and str(found.stop_reason).startswith("budget_"):
        render.note("no decisions: the limit was met within a step, not before a retrieval")
    elif not rows:
        render.note("no decisions: the run had no --policy and met no limit")
    for row in rows:
        render.say("\n".join(_told(row)))


def _told(row: "DecisionOutcome") -> list[str]:
    decided = row.decision
    choice = "retrieve" if decided.retrieve else "stop"
    plural = "" if decided.retrieval == 1 else "s"
    lines = [
        f"{row.step:3d}  after {decided.retrieval} retrieval{plural}: {choice}"
        f"  ({render.plain(decided.policy)})",
        f"     {render.plain(decided.reason)}",
    ]
    if decided.gain is not None:
        between = f"[{decided.low:+.3f}, {decided.high:+.3f}]" if decided.low is not None else ""
        price = ""
        if decided.cost is not None and decided.price is not None:
            price = f" for {decided.cost:.0f} tokens at {decided.price:.2g} each"
        lines.append(f"     predicted gain {decided.gain:+.3f} {between}{price}")
    if decided.signals:
        told = ", ".join(f"{name} {value:.3g}" for name, value in decided.signals.items())
        lines.append(f"     {told}")
    realised = f"{row.gain:+.3f}" if row.gain is not None else f"unknown: {row.reason}"
    regret = f", regret {row.regret:.3f}" if row.regret is not None else ""
    lines.append(f"     realised gain {realised}, {row.tokens} tokens{regret}")
    lines.append(f"     {render.plain(row.sentence)}")
    return lines


@app.command("fit")
def fit(
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The policy file to write.",
            envvar="HOPSCOPE_BUDGET_OUT",
            rich_help_panel=PLACES,
        ),
    ],
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="For value: tokens=N, the mean tokens per question, the cost of deciding "
            "included. For route: UNIT=N of the objective, or SET:UNIT=N,... for sets; by default "
            "the least that is as accurate as the best arm.",
            envvar="HOPSCOPE_BUDGET",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    per: Annotated[
        Share,
        typer.Option(
            "--budget-per",
            help="For route: whether each set has the budget for itself.",
            envvar="HOPSCOPE_BUDGET_SHARED",
            rich_help_panel=BUDGET,
        ),
    ] = Share.all,
    guarantee: Annotated[
        list[str] | None,
        typer.Option(
            "--guarantee",
            metavar="RISK",
            help="For value and route, in place of --budget: the least cost that keeps a risk "
            "within a limit with a level of confidence, as in loss<=.02@.95, the accuracy lost "
            "against always retrieving, or the dearest arm; or tokens<=900, steps<=2, "
            "p95_seconds<=3; repeatable. [env var: "
            "HOPSCOPE_GUARANTEES, one a line]",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    kind: Annotated[
        PolicyKind | None,
        typer.Option(
            help="The policy to learn; by default route from --outcomes, else value.",
            envvar="HOPSCOPE_BUDGET_KIND",
        ),
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="EXP",
            help="The experiment whose runs to learn from.",
            envvar="HOPSCOPE_BUDGET_FROM",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    given: OutcomeFiles = None,
    adapt: AdaptFile = None,
    arms: ArmNames = None,
    cost: CostTexts = None,
    objective: ObjectiveName = Objective.steps,
    model: ModelName = None,
    prices: PricesFile = None,
    workflow: ArmName = None,
    utility: Utility = Worth.correctness,
    file: code_options.Files = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    db: Database = None,
) -> None:
    """Learn a policy from an experiment or from outcomes, for --policy of `run` and `eval`."""
    from hopscope.lab.budget.learning import learn
    from hopscope.lab.budget.promises.guarantee import learn_promised
    from hopscope.lab.budget.promises.report import told
    from hopscope.lab.budget.stored import of_experiment
    from hopscope.runtime.errors import UsageError
    from hopscope.tracing.learned.promise import parse_all

    risks = parse_all(guarantee or parts.lines("HOPSCOPE_GUARANTEES"))
    if experiment and given:
        raise UsageError("give either --from EXP or --outcomes FILE")
    files = [] if experiment else outcomes.files(given)
    kind = kind or (PolicyKind.route if files else PolicyKind.value)
    if (kind is PolicyKind.route) != bool(files):
        raise UsageError(
            "a router is learned from --outcomes FILE, and other policies from --from EXP"
        )
    if kind is PolicyKind.route:
        if risks and (budget or adapt or per is Share.set):
            raise UsageError(
                "--guarantee is in place of --budget and --budget-per, without --adapt"
            )
        read = outcomes.Reading(
            files,
            outcomes.arms(arms),
            outcomes.costs(cost),
            objective.value,
            outcomes.price(model, prices),
        )
        _fit_route(read, adapt, budget, per, out, risks=risks, seed=seed, overwrite=overwrite)
        return
    if experiment is None:
        raise UsageError("give --from EXP, the experiment to learn from, or --outcomes FILE")
    if risks and (budget or kind is not PolicyKind.value):
        raise UsageError(
            "--guarantee is for value and route, in place of --budget; to limit tokens as well, "
            "give --guarantee 'tokens<=N'"
        )
    tokens = _tokens(budget) if kind is PolicyKind.value and not risks else None
    if not out.absolute().parent.is_dir():
        raise UsageError(f"{out} cannot be written: {out.parent} is no folder")
    check_free([out], overwrite=overwrite)
    found = of_experiment(db, experiment, workflow, utility.value)
    render.progress(f"learning from {len(found.paths)} questions")
    settings: dict[str, Any] = {"utility": utility.value, "seed": seed, "source": experiment}
    if risks:
        made = learn_promised(found, risks, **settings)
    else:
        made = learn(found, kind.value, tokens=tokens, **settings)
    policy = made.write(out)
    render.progress("")
    figures: dict[str, Any] = made.learned.learned
    if made.learned.promise is not None:
        render.say("\n".join(told(made.learned.promise)))
    if "utility" in figures:
        render.say(
            f"{utility.value} {figures['utility']:.3f} with {figures['tokens']:.0f} tokens and "
            f"{figures['retrievals']:.2f} retrievals per question ({figures['estimator']})"
        )
    render.note(
        f"{kind.value} policy of {made.questions} questions written to {out}: use it with "
        f"--policy {policy}"
    )


def _fit_route(
    read: outcomes.Reading,
    adapt: Path | None,
    budget: str | None,
    per: Share,
    out: Path,
    *,
    risks: "Sequence[Risk]",
    seed: int,
    overwrite: bool,
) -> None:
    """Learn a router and write it."""
    from hopscope.lab.budget.promises import routers
    from hopscope.lab.budget.promises.report import told
    from hopscope.lab.budget.routing import budgets as budgeting
    from hopscope.lab.budget.routing.fitting import Fitting, learn
    from hopscope.lab.export.sheets import whole
    from hopscope.runtime.errors import UsageError

    if not out.absolute().parent.is_dir():
        raise UsageError(f"{out} cannot be written: {out.parent} is no folder")
    check_free([out], overwrite=overwrite)
    found = read.outcomes()
    few = None
    if adapt is not None:
        few = read._replace(files=[adapt], arms=found.arms).outcomes()
    budgets = budgeting.parse(budget, unit=read.unit, option="--budget")
    if per is Share.set:
        budgets = budgeting.of_each(budgets, (few or found).sets)
    render.progress(f"learning from {len(found.rows)} questions")
    source = ", ".join(file.name for file in read.files)
    fitting = Fitting(seed=seed)
    if risks:
        file = routers.learn(found, risks, fitting=fitting, source=source)
    else:
        file = learn(found, budgets=budgets, adapt=few, fitting=fitting, source=source).file
    with whole(out) as unfinished:
        unfinished.write_text(file.model_dump_json() + "\n", encoding="utf-8")
    render.progress("")
    figures: dict[str, Any] = file.learned
    if file.promise is not None:
        render.say("\n".join(told(file.promise)))
    else:
        render.say(
            f"accuracy {figures['utility']:.3f} with {figures[file.unit]:.2f} {file.unit} per "
            f"question ({figures['estimator']}); best arm {figures['best_arm']:.3f}"
        )
    _note_outcomes(found.left_out, found.assumed, file.unit)
    if risks:
        _note_repeated(found)
    render.note(
        f"route policy of {len(found.rows)} questions written to {out}: use it with "
        f"--policy route:{out}"
    )


def _note_outcomes(left_out: int, assumed: dict[str, str], unit: str) -> None:
    if left_out:
        render.note(f"{left_out} rows lack an arm and are left out")
    for arm, source in assumed.items():
        render.note(f"rows do not tell the {unit} of {arm}: {source}")


def _note_repeated(found: "Outcomes") -> None:
    repeated = len(found.rows) - len(found.distinct.rows)
    if repeated:
        render.note(f"{repeated} rows repeat a question, which counts once in a promise")


def _tokens(budget: str | None) -> float:
    from hopscope.runtime import specs
    from hopscope.runtime.errors import UsageError

    given = specs.pairs([budget] if budget else [])
    if set(given) != {"tokens"}:
        raise UsageError("give the budget as --budget tokens=N, the mean tokens per question")
    try:
        tokens = float(given["tokens"])
    except ValueError:
        raise UsageError(f"--budget tokens={given['tokens']}: that is no number") from None
    if not (tokens >= 0 and isfinite(tokens)):
        raise UsageError(f"--budget tokens={given['tokens']}: give a number from 0 on")
    return tokens


@app.command("frontier")
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
    found = of_experiment(db, experiment, workflow, utility.value)
    swept = sweep(
        found.paths, found.reader, fitting=Fitting(seed=seed), seed=seed, progress=render.progress
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
    _plain(spec)
    file = read(RouteFile, Path(spec.argument), workflow="", reader="")
    reading = outcomes.Reading(files, file.arms, outcomes.costs(cost), file.unit, price)
    found = reading.outcomes(file)
    render.progress(f"routing {len(found.rows)} questions")
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


@app.command("check")
def check(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="POLICY", help="The policy with a promise: value:FILE or route:FILE."
        ),
    ],
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="EXP",
            help="For value: an experiment on fresh questions that always retrieved.",
        ),
    ] = None,
    given: OutcomeFiles = None,
    cost: CostTexts = None,
    workflow: ArmName = None,
    file: code_options.Files = None,
    db: Database = None,
    json: Json = False,
) -> None:
    """Tell on fresh questions whether a policy's promise is kept, broken or not yet known.

    You may look as often as you like: the bounds hold for all looks together. Exit code 1 if it is
    broken. It also tells which signals have moved since the promise was made.
    """
    from hopscope.lab.budget.promises import checking
    from hopscope.lab.budget.promises.report import checked

    kind, path = _promising(policy)
    files = [] if experiment else outcomes.files(given)
    if kind is PolicyKind.route:
        found = _check_route(path, files, cost)
    else:
        found = _check_value(path, experiment, workflow, db)
    if json:
        render.print_json(found.model_dump(mode="json"))
    else:
        render.say("\n".join(checked(found)))
    if not found.fresh:
        render.note(
            "these questions have the name of those that the policy was learned from: check it on "
            "others, or the answer is worth nothing"
        )
    if found.verdict == checking.BROKEN:
        raise typer.Exit(1)


def _promising(policy: str) -> tuple[PolicyKind, Path]:
    from hopscope.runtime.errors import UsageError
    from hopscope.runtime.specs import Spec

    spec = Spec.parse(policy)
    if spec.name not in (PolicyKind.value, PolicyKind.route) or not spec.argument:
        raise UsageError("give the policy to check as value:FILE or route:FILE")
    _plain(spec)
    return PolicyKind(spec.name), Path(spec.argument)


def _plain(spec: "Spec") -> None:
    """
    Raises:
        UsageError: a policy has options, which are for runs.
    """
    from hopscope.runtime.errors import UsageError

    if spec.options:
        key = spec.options[0][0]
        raise UsageError(
            f"{spec}: the file is taken as it is here; leave out {key}, an option of `run` and "
            "`eval`"
        )


def _check_route(path: Path, files: list[Path], cost: list[str] | None) -> "Check":
    from hopscope.lab.budget.promises import checking
    from hopscope.runtime.errors import UsageError
    from hopscope.tracing.learned.files import read
    from hopscope.tracing.learned.route_file import RouteFile

    if not files:
        raise UsageError("a router is checked on outcomes: give --outcomes FILE, and no experiment")
    file = read(RouteFile, path, workflow="", reader="")
    checking.promise_of(file)
    found = outcomes.Reading(files, file.arms, outcomes.costs(cost), file.unit).outcomes(file)
    _note_outcomes(found.left_out, found.assumed, file.unit)
    _note_repeated(found)
    source = ", ".join(each.name for each in files)
    return checking.check_outcomes(file, found, source=source)


def _check_value(
    path: Path, experiment: str | None, workflow: str | None, db: str | None
) -> "Check":
    from hopscope.lab.budget.promises import checking
    from hopscope.lab.budget.stored import of_experiment
    from hopscope.runtime.errors import UsageError
    from hopscope.tracing.learned.files import read
    from hopscope.tracing.learned.value_file import ValueFile

    if experiment is None:
        raise UsageError("give the experiment whose runs to check the policy on, and no --outcomes")
    file = read(ValueFile, path, workflow=None, reader=None)
    checking.promise_of(file)
    walks = of_experiment(db, experiment, workflow, Worth(file.utility).value)
    read(ValueFile, path, workflow=walks.workflow, reader=walks.reader.name)
    return checking.check_paths(file, [each.path for each in walks.paths], source=experiment)


@app.command("allocate")
def allocate(
    questions: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The questions, or with --per a sample of those to come: JSON lines with "
            "`question`, for a router also its draft and set.",
        ),
    ],
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="A policy file of `hopscope budget fit`, or route:FILE.",
            envvar="HOPSCOPE_BUDGET_POLICY",
            rich_help_panel=BUDGET,
        ),
    ],
    total: Annotated[
        float,
        typer.Option(
            min=0,
            help="Tokens to divide, beyond answering all without retrieval; for a router the whole "
            "cost in its unit.",
            envvar="HOPSCOPE_BUDGET_TOTAL",
            rich_help_panel=BUDGET,
        ),
    ],
    per: Annotated[
        str | None,
        typer.Option(
            "--per",
            metavar="month=YYYY-MM",
            help="For a router: the total is for a month of questions like those in FILE.",
            envvar="HOPSCOPE_BUDGET_MONTH",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="With --per: expected questions a day.",
            envvar="HOPSCOPE_BUDGET_RATE",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    forecast: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --per, in place of --rate: JSON lines of `date` and expected `questions`.",
            envvar="HOPSCOPE_BUDGET_FORECAST",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    spent: Annotated[
        float,
        typer.Option(
            min=0,
            help="With --per: what the month's earlier days have cost.",
            envvar="HOPSCOPE_BUDGET_SPENT",
            rich_help_panel=BUDGET,
        ),
    ] = 0.0,
    today: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            metavar="DATE",
            help="With --per: the first day to plan; by default today, or the month's first day.",
            envvar="HOPSCOPE_BUDGET_TODAY",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    workflow: WorkflowName = "ircot",
    reader: ReaderSpec = parts.TINY,
    thinking: ThinkingSpec = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Divide a total among questions for the highest predicted gain, or over a month."""
    from hopscope.runtime.errors import UsageError
    from hopscope.runtime.specs import Spec

    if not all(isfinite(each) for each in (total, rate or 0.0, spent)):
        raise UsageError("--total, --rate and --spent are finite numbers")
    spec = Spec.parse(policy)
    if spec.name == "route" and spec.argument:
        _plain(spec)
        month = None if per is None else _Month(per, rate, forecast, spent, today)
        _allocate_route(questions, Path(spec.argument), total, month, json=json)
        return
    if per is not None:
        raise UsageError("--per plans with a router: give --policy route:FILE")
    reader = parts.thoughtful(reader, thinking)
    from hopscope.lab.budget.batch import questions_of, share_out
    from hopscope.tracing.learned.files import read
    from hopscope.tracing.learned.value_file import ValueFile

    asked = questions_of(questions)
    render.progress("loading the reader")
    model = parts.reader(reader)
    file = read(ValueFile, Path(policy), workflow=shown(workflow), reader=model.name)
    render.progress(f"predicting the gains of {len(asked)} questions")
    shared = share_out(asked, file, model, total=total, seed=seed)
    render.progress("")
    if json:
        render.print_json(shared.model_dump(mode="json") | {"gap": shared.gap})
        return
    for each, option in zip(asked, shared.chosen, strict=True):
        figures = f"{option.retrievals}  {option.value:+.3f}  {option.cost:7.0f}"
        render.say(f"{figures}  {render.plain(each.text)}")
    render.say(
        f"predicted gain {shared.value:.3f} of {shared.bound:.3f} at most, for "
        f"{shared.cost:.0f} of {total:.0f} tokens",
        stderr=True,
    )


class _Month(NamedTuple):
    """The options of `--per`."""

    per: str
    rate: float | None
    forecast: Path | None
    spent: float
    today: datetime | None


def _allocate_route(
    path: Path, policy: Path, total: float, month: _Month | None, *, json: bool
) -> None:
    """Divide a total by a router."""
    from hopscope.lab.budget import outcomes as rows
    from hopscope.lab.budget.routing import forecast
    from hopscope.lab.budget.routing.fitting import asked
    from hopscope.runtime.errors import UsageError
    from hopscope.tracing.learned.files import read
    from hopscope.tracing.learned.route_file import RouteFile

    file = read(RouteFile, policy, workflow="", reader="")
    batch = [asked(row) for row in rows.questions(path)]
    if month is None:
        shared = forecast.share_out(batch, file, total)
        if json:
            render.print_json(shared.model_dump(mode="json") | {"gap": shared.gap})
            return
        for each, option in zip(batch, shared.chosen, strict=True):
            figures = f"{file.arms[option.retrievals]:8s}  {option.value:.3f}  {option.cost:7.4g}"
            render.say(f"{figures}  {render.plain(each.question)}")
        render.say(
            f"predicted accuracy {shared.value / len(batch):.3f} for {shared.cost:.4g} of "
            f"{total:g} {file.unit}",
            stderr=True,
        )
        return
    start, last = forecast.month(month.per)
    first = max(start, (month.today or datetime.now()).date())
    if first > last:
        raise UsageError(f"--per {month.per}: the month is over on {first}")
    if (month.rate is None) == (month.forecast is None):
        raise UsageError("give the questions to come as --rate N a day, or as --forecast FILE")
    left = forecast.days(first, last)
    if month.forecast is not None:
        by_day = forecast.expected(month.forecast)
        coming = sum(by_day.get(day, 0.0) for day in left)
    else:
        coming = (month.rate or 0.0) * len(left)
    made = forecast.plan(
        batch, file, first=first, last=last, questions=coming, left=total - month.spent
    )
    if json:
        render.print_json(made.model_dump(mode="json"))
        return
    render.say("\n".join(forecast.told(made)))
    render.note(f"use it with --policy route:{policy},price={made.price:.6g}")
