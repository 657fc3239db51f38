"""`hopscope budget allocate`: divide a total among questions, or over a month."""

from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from hopscope.api import parts
from hopscope.api.views import render
from hopscope.cli.commands.budget import routers
from hopscope.cli.options.help import BUDGET
from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.models import ReaderSpec, ThinkingSpec, WorkflowName
from hopscope.cli.options.places import Json
from hopscope.runtime.code_files import shown
from hopscope.runtime.texts.counting import counted


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
        routers.without_options(spec)
        month = None if per is None else _Month(per, rate, forecast, spent, today)
        _allocate_route(questions, Path(spec.argument), total, month, json=json)
        return
    if per is not None:
        raise UsageError("--per plans with a router: give --policy route:FILE")
    reader = parts.thoughtful(reader, thinking)
    from hopscope.lab.budget.batch import questions_of, share_out
    from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
    from hopscope.tracing.learned.files import read
    from hopscope.tracing.learned.value_file import ValueFile

    asked = questions_of(questions)
    render.progress("loading the reader")
    model = parts.reader(reader)
    # Its drafts are in the default prompts.
    file = read(
        ValueFile,
        Path(policy),
        workflow=shown(workflow),
        reader=model.name,
        prompts=DEFAULT_PROMPTS.name,
    )
    render.progress(f"predicting the gains of {counted(len(asked), 'question')}")
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
