"""`hopscope budget check`: whether the promise of a policy is kept on fresh questions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api.views import render
from hopscope.cli.commands.budget import routers
from hopscope.cli.commands.budget.options import ArmName, PolicyKind, Worth
from hopscope.cli.options import code_options, outcomes
from hopscope.cli.options.outcomes import CostTexts, OutcomeFiles
from hopscope.cli.options.places import Database, Json

if TYPE_CHECKING:
    from hopscope.lab.budget.promises.checking import Check


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
    broken. It also tells which signals have moved since the promise was made. The runs may be by
    another reader, to see whether the promise would survive it.
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
            f"{_stale(found)} the policy was learned from: check it on others, or the answer is "
            "worth nothing"
        )
    if found.verdict == checking.BROKEN:
        raise typer.Exit(1)


def _stale(found: "Check") -> str:
    if found.known is None:
        return "these questions have the name of those that"
    if found.known == found.questions:
        return "these are questions that"
    return f"{found.known:,} of these {found.questions:,} questions are among those that"


def _promising(policy: str) -> tuple[PolicyKind, Path]:
    from hopscope.runtime.errors import UsageError
    from hopscope.runtime.specs import Spec

    spec = Spec.parse(policy)
    if spec.name not in (PolicyKind.value, PolicyKind.route) or not spec.argument:
        raise UsageError("give the policy to check as value:FILE or route:FILE")
    routers.without_options(spec)
    return PolicyKind(spec.name), Path(spec.argument)


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
    routers.note_outcomes(found.left_out, found.assumed, file.unit)
    routers.note_repeated(found)
    source = ", ".join(each.name for each in files)
    return checking.check_outcomes(file, found, source=source)


def _check_value(
    path: Path, experiment: str | None, workflow: str | None, db: str | None
) -> "Check":
    from hopscope.lab.budget.promises import checking
    from hopscope.lab.budget.stored import of_experiment
    from hopscope.runtime.errors import UsageError
    from hopscope.runtime.texts.storable import line
    from hopscope.tracing.learned.files import read
    from hopscope.tracing.learned.value_file import ValueFile

    if experiment is None:
        raise UsageError("give the experiment whose runs to check the policy on, and no --outcomes")
    file = read(ValueFile, path, workflow=None, reader=None)
    checking.promise_of(file)
    weight = 1.0 if file.cached is None else file.cached
    if file.utility not in [*Worth]:
        raise UsageError(
            f"policy {path}: no run tells its utility {line(file.utility)}; make one with "
            "`hopscope budget fit`"
        )
    worth = Worth(file.utility)
    walks = of_experiment(db, experiment, workflow, worth.value, cached=weight)
    read(ValueFile, path, workflow=walks.workflow, reader=None)
    return checking.check_paths(
        file,
        [each.path for each in walks.paths],
        source=experiment,
        reader=walks.reader.name,
        prompts=walks.prompts,
    )
