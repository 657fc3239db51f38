"""`hopscope budget fit`: learn a policy from an experiment, or a router from outcomes."""

from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopscope.api import parts
from hopscope.api.views import render
from hopscope.cli.commands.budget import routers
from hopscope.cli.commands.budget.options import ArmName, CachedWeight, PolicyKind, Utility, Worth
from hopscope.cli.options import code_options, outcomes
from hopscope.cli.options.help import BUDGET, PLACES, SELECTION
from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.outcomes import (
    ArmNames,
    CostTexts,
    ModelName,
    Objective,
    ObjectiveName,
    OutcomeFiles,
)
from hopscope.cli.options.places import Database
from hopscope.cli.options.spending import PricesFile
from hopscope.cli.options.written import Overwrite, check_free
from hopscope.runtime.texts.counting import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hopscope.tracing.learned.promise import Risk


class Share(StrEnum):
    all = "all"
    set = "set"


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
            "p90_steps<=3, p95_seconds<=3; repeatable. With --adapt the promise is by half of "
            "those questions, and for questions like them. [env var: "
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
    experiments: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="EXP",
            help="The experiment whose runs to learn from; repeatable. [env var: "
            "HOPSCOPE_BUDGET_FROM, one a line]",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    given: OutcomeFiles = None,
    adapt: Annotated[
        str | None,
        typer.Option(
            "--adapt",
            metavar="SOURCE",
            help="A few more questions, 50 or so, like those to come: an experiment beside --from, "
            "of the workflow and reader that the policy is for, or a file beside --outcomes, whose "
            "rows count more than the others. The price is for them.",
            envvar="HOPSCOPE_BUDGET_ADAPT",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    arms: ArmNames = None,
    cost: CostTexts = None,
    objective: ObjectiveName = Objective.steps,
    model: ModelName = None,
    prices: PricesFile = None,
    workflow: ArmName = None,
    utility: Utility = Worth.correctness,
    cached: CachedWeight = 1.0,
    file: code_options.Files = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    db: Database = None,
) -> None:
    """Learn a policy from an experiment or from outcomes, for --policy of `run` and `eval`."""
    from hopscope.lab.budget.learning import learn
    from hopscope.lab.budget.promises.guarantee import learn_promised
    from hopscope.lab.budget.promises.report import told
    from hopscope.lab.budget.stored import joined, of_experiment
    from hopscope.runtime.errors import UsageError
    from hopscope.tracing.learned.promise import parse_all

    risks = parse_all(guarantee or parts.lines("HOPSCOPE_GUARANTEES"))
    if experiments and given:
        raise UsageError("give either --from EXP or --outcomes FILE")
    files = [] if experiments else outcomes.files(given)
    experiments = experiments or ([] if files else parts.lines("HOPSCOPE_BUDGET_FROM"))
    kind = kind or (PolicyKind.route if files else PolicyKind.value)
    if (kind is PolicyKind.route) != bool(files):
        raise UsageError(
            "a router is learned from --outcomes FILE, and other policies from --from EXP"
        )
    if kind is PolicyKind.route:
        if risks and (budget or per is Share.set):
            raise UsageError("--guarantee is in place of --budget and --budget-per")
        read = outcomes.Reading(
            files,
            outcomes.arms(arms),
            outcomes.costs(cost),
            objective.value,
            outcomes.price(model, prices),
        )
        few = Path(adapt) if adapt else None
        _fit_route(read, few, budget, per, out, risks=risks, seed=seed, overwrite=overwrite)
        return
    if not experiments:
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
    if adapt and kind is not PolicyKind.value:
        raise UsageError("--adapt is for value and route")
    if budget and kind is not PolicyKind.value:
        raise UsageError(f"--budget is for value and route: leave it out with --kind {kind.value}")
    names = [*experiments, *([adapt] if adapt else [])]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{twice} is named twice, by --from or --adapt: name it once")
    among = len(names) > 1
    walks = [
        of_experiment(db, n, workflow, utility.value, cached=cached, among=among) for n in names
    ]
    render.progress(f"learning from {counted(sum(len(each.paths) for each in walks), 'question')}")
    settings: dict[str, Any] = {"utility": utility.value, "seed": seed, "source": ", ".join(names)}
    others = walks[:-1] if adapt else []
    target = walks[-1] if adapt else joined(walks)
    if risks:
        made = learn_promised(target, risks, others=others, **settings)
    else:
        made = learn(target, kind.value, others=others, tokens=tokens, **settings)
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
        f"{kind.value} policy of {counted(made.questions, 'question')} written to {out}: use it "
        f"with --policy {policy}"
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
    from hopscope.lab.budget.promises import routers as promised
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
    render.progress(f"learning from {counted(len(found.rows), 'question')}")
    source = ", ".join(file.name for file in (*read.files, *([adapt] if adapt else [])))
    fitting = Fitting(seed=seed)
    if risks:
        file = promised.learn(found, risks, adapt=few, fitting=fitting, source=source)
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
    routers.note_outcomes(found.left_out, found.assumed, file.unit)
    if risks:
        routers.note_repeated(few or found)
    render.note(
        f"route policy of {counted(len(found.rows), 'question')} written to {out}: use it with "
        f"--policy route:{out}"
    )


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
