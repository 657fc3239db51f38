"""`hopscope budget`: explain decisions, learn policies, compare them, share out a total."""

from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopscope.cli import render, wiring
from hopscope.cli.grid import Column, Grid
from hopscope.cli.run import Database, Json, ReaderSpec, Seed, ThinkingSpec, WorkflowName
from hopscope.cli.show import RunSpec, find
from hopscope.cli.written import Overwrite, check_free

if TYPE_CHECKING:
    from hopscope.lab.budget.frontier import Comparison
    from hopscope.lab.budget.stored import Walked
    from hopscope.runtime.ports import Reader
    from hopscope.runtime.types import Credit
    from hopscope.tracing.decisions import Explained

app = typer.Typer(
    help="Decide, before paying, whether another retrieval is worth it.", no_args_is_help=True
)


class Kind(StrEnum):
    value = "value"
    classifier = "classifier"
    tasr = "tasr"


class Worth(StrEnum):
    correctness = "correctness"
    seper = "seper"


class Axis(StrEnum):
    tokens = "tokens"
    retrievals = "retrievals"


ExperimentName = Annotated[
    str,
    typer.Argument(metavar="EXPERIMENT", help="A name given to `hopscope eval --name`."),
]
ArmName = Annotated[
    str | None,
    typer.Option(
        "--workflow",
        "-w",
        metavar="ARM",
        help="Which of the experiment's workflows; needed where it has several.",
        envvar="HOPSCOPE_BUDGET_ARM",
    ),
]
Utility = Annotated[
    Worth,
    typer.Option(
        help="What a stop is worth: whether the short answer there is right, or the belief in the "
        "right answer that was measured.",
        envvar="HOPSCOPE_UTILITY",
    ),
]


@app.callback()
def _group() -> None:
    """Decide, before paying, whether another retrieval is worth it."""


@app.command("explain")
def explain(run: RunSpec = "last", db: Database = None, json: Json = False) -> None:
    """Show each decision of a run: what it went by, and what became of it."""
    from hopscope.store.store import Store
    from hopscope.tracing import decisions

    with Store.open(db, create=False, reading=True) as store:
        found = find(store, run)
        credits = store.credits(found.id)
    rows = decisions.explain(found, _shown(credits))
    if json:
        render.print_json([row.model_dump(mode="json") for row in rows])
        return
    render.say(f"{found.id[:12]}  {found.workflow}  ended by {found.stop_reason or found.status}")
    if not rows and str(found.stop_reason).startswith("budget_"):
        render.note("nothing was decided before a retrieval: the limit was met within a step")
    elif not rows:
        render.note("nothing was decided: the run had no --policy, and met no limit")
    for row in rows:
        render.say("\n".join(_told(row)))


def _shown(credits: "list[Credit]") -> "list[Credit]":
    """Those of the appraisal that `show` shows."""
    from hopscope.tracing.report import chosen

    shown = chosen(credits)
    return [credit for credit in credits if credit.provenance == shown]


def _told(row: "Explained") -> list[str]:
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
        lines.append(
            f"     predicted gain {decided.gain:+.3f} {between} for {decided.cost:.0f} tokens at "
            f"{decided.price:.2g} each"
        )
    if decided.signals:
        told = ", ".join(f"{name} {value:.3g}" for name, value in decided.signals.items())
        lines.append(f"     {told}")
    realised = f"{row.gain:+.3f}" if row.gain is not None else f"unknown: {row.reason}"
    regret = f", regret {row.regret:.3f}" if row.regret is not None else ""
    lines.append(f"     realised gain {realised}, {row.tokens} tokens{regret}")
    return lines


@app.command("fit")
def fit(
    experiment: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="EXPERIMENT",
            help="Learn from the runs of this experiment.",
            envvar="HOPSCOPE_BUDGET_FROM",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="The policy file to write.", envvar="HOPSCOPE_BUDGET_OUT"),
    ],
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="tokens=N",
            help="Mean tokens per question, what deciding costs included; for value.",
            envvar="HOPSCOPE_BUDGET",
        ),
    ] = None,
    kind: Annotated[
        Kind, typer.Option(help="Which policy to learn.", envvar="HOPSCOPE_BUDGET_KIND")
    ] = Kind.value,
    workflow: ArmName = None,
    utility: Utility = Worth.correctness,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    db: Database = None,
) -> None:
    """Learn a policy from stored runs, for --policy of `hopscope run` and `eval`."""
    from hopscope.lab.budget import classify
    from hopscope.lab.budget import fit as learning
    from hopscope.lab.budget.calibrate import calibrate
    from hopscope.lab.export.sheets import whole
    from hopscope.runtime.errors import UsageError

    tokens = _tokens(budget) if kind is Kind.value else 0.0
    if not out.absolute().parent.is_dir():
        raise UsageError(f"{out} cannot be written: {out.parent} is no folder")
    check_free([out], overwrite=overwrite)
    found, reader, name = _walked(experiment, workflow, utility, db)
    paths = [each.path for each in found]
    render.progress(f"learning from {len(paths)} questions")
    learned: Any
    if kind is Kind.value:
        learned = learning.fit(
            paths,
            workflow=name,
            reader=reader.name,
            utility=utility.value,
            budget=tokens,
            fitting=learning.Fitting(seed=seed),
            source=experiment,
        ).file
    elif kind is Kind.classifier:
        learned = classify.learn(paths, workflow=name, reader=reader.name, source=experiment)
    else:
        learned = calibrate(paths, workflow=name, reader=reader.name, source=experiment)
    with whole(out) as unfinished:
        unfinished.write_text(learned.model_dump_json(indent=1) + "\n", encoding="utf-8")
    render.progress("")
    figures = getattr(learned, "learned", {})
    if "utility" in figures:
        render.say(
            f"{utility.value} {figures['utility']:.3f} with {figures['tokens']:.0f} tokens and "
            f"{figures['retrievals']:.2f} retrievals per question ({figures['estimator']})"
        )
    setting = ",calibration=" if kind is Kind.tasr else ":"
    render.note(
        f"{kind.value} policy of {len(paths)} questions written to {out}: use it with "
        f"--policy {kind.value}{setting}{out}"
    )


def _tokens(budget: str | None) -> float:
    from hopscope.runtime.errors import UsageError

    given = wiring.parse_pairs([budget] if budget else [])
    if set(given) != {"tokens"}:
        raise UsageError("give the budget as --budget tokens=N, the mean tokens per question")
    try:
        tokens = float(given["tokens"])
    except ValueError:
        raise UsageError(f"--budget tokens={given['tokens']}: that is no number") from None
    if not (tokens >= 0 and isfinite(tokens)):
        raise UsageError(f"--budget tokens={given['tokens']}: give a number from 0 on")
    return tokens


def _walked(
    experiment: str, workflow: str | None, utility: Worth, db: str | None
) -> "tuple[list[Walked], Reader, str]":
    """The paths of an experiment's runs, the reader that gives their signals, and the workflow's
    name."""
    from hopscope.lab.budget.stored import walked
    from hopscope.runtime.errors import UsageError
    from hopscope.store.store import Store
    from hopscope.tracing.caching import CachedReader

    with Store.open(db, create=False, reading=True) as store:
        plan = store.experiments.find(experiment)
        arms = {arm.label: arm.workflow for arm in plan.arms}
        arm = workflow or (next(iter(arms)) if len(arms) == 1 else None)
        if arm not in arms:
            raise UsageError(f"which workflow of {experiment}? give -w with {', '.join(arms)}")
        items = [
            item
            for item in store.experiments.items(experiment, status="ok")
            if item.arm == arm and item.outcome and item.outcome.status == "ok"
        ]
        render.progress("loading the reader")
        model = wiring.reader(str(plan.settings.get("reader", wiring.TINY)))
        if model.name != plan.reader:
            raise UsageError(f"{experiment} was read by {plan.reader}, which is now {model.name}")
        reader = CachedReader(model, size=200_000)
        credits = store.experiments.credits(experiment, passages=False)
        found: list[Walked] = []
        left_out: dict[str, str] = {}
        for number, item in enumerate(items, start=1):
            render.progress(f"signals of question {number} of {len(items)}")
            if item.outcome is None:
                continue
            run = store.load(item.outcome.run_id)
            try:
                known = credits.get(run.id, [])
                found.append(walked(run, reader, utility.value, _shown(known), item.entry.kind))
            except UsageError as error:
                left_out[run.id] = str(error)
    render.progress("")
    if left_out:
        last = list(left_out.values())[-1]
        render.note(f"{len(left_out)} runs are left out, for example: {last}")
    if not found:
        raise UsageError(f"{experiment} has no run of {arm} to learn from")
    return found, reader, arms[arm]


@app.command("frontier")
def frontier(
    experiment: ExperimentName,
    workflow: ArmName = None,
    utility: Utility = Worth.correctness,
    by: Annotated[
        Axis, typer.Option(help="What is to be saved.", envvar="HOPSCOPE_BUDGET_BY")
    ] = Axis.tokens,
    resamples: Annotated[
        int, typer.Option(min=100, help="Of the bootstrap.", envvar="HOPSCOPE_BUDGET_RESAMPLES")
    ] = 1000,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE.svg",
            help="Draw the frontiers.",
            envvar="HOPSCOPE_BUDGET_PLOT",
        ),
    ] = None,
    overwrite: Overwrite = False,
    seed: Seed = 0,
    db: Database = None,
    json: Json = False,
) -> None:
    """What every policy would have got for how much, by the runs of an experiment.

    Learned policies decide about questions that they have not learned from.
    """
    from hopscope.lab.budget import frontier as fronts
    from hopscope.lab.budget.fit import Fitting
    from hopscope.lab.budget.sweeps import sweep

    check_free([plot] if plot else [], overwrite=overwrite)
    found, reader, _ = _walked(experiment, workflow, utility, db)
    swept = sweep(found, reader, fitting=Fitting(seed=seed), seed=seed, progress=render.progress)
    render.progress("resampling")
    ends = [swept.never, swept.native]
    sweeps = [*swept.policies, swept.oracle]
    if by is Axis.retrievals:
        ends = [each.by_retrievals for each in ends]
        sweeps = [each.by_retrievals for each in sweeps]
    reference = "value" if "value" not in swept.missing else sweeps[0].policy
    compared = fronts.compare(
        sweeps, never=ends[0], native=ends[1], reference=reference, resamples=resamples, seed=seed
    )
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
    headings, *rows = fronts.cells(compared, unit=by.value)
    columns = [Column(headings[0], wraps=14), *(Column(h, 1, right=True) for h in headings[1:])]
    out.print(Grid(columns, rows, stacked=True))


def _draw(compared: "Comparison", path: Path, unit: str, utility: str) -> None:
    from hopscope.lab.budget.plot import draw
    from hopscope.lab.export.sheets import whole

    with whole(path) as unfinished:
        unfinished.write_text(draw(compared, unit=unit, utility=utility), encoding="utf-8")


@app.command("allocate")
def allocate(
    questions: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Questions: JSON lines with `question`."),
    ],
    policy: Annotated[
        Path,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="A file of `hopscope budget fit`.",
            envvar="HOPSCOPE_BUDGET_POLICY",
        ),
    ],
    total: Annotated[
        float,
        typer.Option(
            min=0,
            help="Tokens to share out above answering all without retrieval.",
            envvar="HOPSCOPE_BUDGET_TOTAL",
        ),
    ],
    workflow: WorkflowName = "ircot",
    reader: ReaderSpec = wiring.TINY,
    thinking: ThinkingSpec = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Who of a batch gets how many retrievals, so that the total brings most."""
    reader = wiring.thoughtful(reader, thinking)
    from hopscope.lab.budget.batch import questions_of, share_out
    from hopscope.tracing.policies._learned import read
    from hopscope.tracing.policies._value_file import ValueFile

    asked = questions_of(questions)
    render.progress("loading the reader")
    model = wiring.reader(reader)
    file = read(ValueFile, policy, workflow=workflow, reader=model.name)
    render.progress(f"looking at {len(asked)} questions")
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
