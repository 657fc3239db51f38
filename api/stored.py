"""Selects stored runs: named runs, runs of experiments, or the newest."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hopscope.runtime.types import Run
    from hopscope.store.store import Store

LAST = "last"


def find(store: "Store", run: str) -> "Run":
    """The run of an id or the only one that begins so, or the `last`.

    Raises:
        UsageError: there is none, or several.
    """
    return store.latest() if run == LAST else store.load(run)


class ArmLabel(NamedTuple):
    """The experiment of a run, and its workflow's label there."""

    experiment: str
    label: str


def ids(
    store: "Store", specs: Iterable[str], *, workflow: str | None = None, limit: int | None = None
) -> dict[str, ArmLabel | None]:
    """The runs named, each once: by id, its beginning or `last`; and the answered ones of an
    experiment by its name, of that workflow and the newest `limit` where these are given. With the
    arm of those that only an experiment names.

    Raises:
        UsageError: there is no such run or several, or the experiment has none of that kind yet.
    """
    from hopscope.runtime.errors import MissingRunError, UsageError

    found: dict[str, ArmLabel | None] = {}
    for spec in specs:
        if store.experiments.known(spec) is None:
            try:
                found[find(store, spec).id] = None
            except MissingRunError:
                names = ", ".join(each.name for each in store.experiments.all()[:10]) or "none"
                raise UsageError(
                    f"no run or experiment {spec!r} in {store.name}: `hopscope ls` lists the runs; "
                    f"experiments: {names}"
                ) from None
            continue
        planned = {arm.label: arm.workflow for arm in store.experiments.find(spec).arms}
        answered = [
            (item.outcome, ArmLabel(spec, item.arm))
            for item in store.experiments.items(spec)
            if item.outcome and workflow in (None, item.arm, planned[item.arm])
        ]
        if not answered:
            by = f" by {workflow}" if workflow else ""
            raise UsageError(f"experiment {spec} has answered no question{by} yet")
        if limit is not None:
            newest = sorted(outcome.started for outcome, _ in answered)[-limit]
            answered = [each for each in answered if each[0].started >= newest][-limit:]
        for outcome, arm in answered:
            found.setdefault(outcome.run_id, arm)
    return found


def load(
    db: str | None, specs: list[str] | None, *, workflow: str | None, limit: int | None
) -> "list[Run]":
    """The runs of `ids`, in that order; without any the stored ones, the newest first.

    Raises:
        UsageError: there is no such run, or none at all.
    """
    from hopscope.runtime.errors import UsageError
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        if specs:
            return [store.load(run) for run in ids(store, specs, workflow=workflow, limit=limit)]
        summaries = store.runs(limit=limit, workflow=workflow)
        if not summaries:
            of = f" of workflow {workflow}" if workflow else ""
            raise UsageError(f"no runs{of} in {store.name} yet: make one with `hopscope run`")
        return [store.load(summary.id) for summary in summaries]
