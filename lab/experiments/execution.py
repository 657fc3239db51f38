"""Work an experiment's plan off: in worker processes, on a Ray cluster or in this process."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

from pydantic import JsonValue

from hopscope.lab.experiments import engine, environment, experiment
from hopscope.lab.experiments.concurrency import Concurrency
from hopscope.lab.experiments.executor import Executor
from hopscope.lab.experiments.planning import ExperimentPlan
from hopscope.lab.experiments.ray_workers import RayPool
from hopscope.lab.experiments.workers import Pool, RunnerFactory
from hopscope.runtime.errors import UsageError
from hopscope.store.experiments.records import Experiment
from hopscope.store.store import Store

_log = logging.getLogger(__name__)

AT_A_TIME = "questions_per_worker"
"""Key of `Workers.threads` in a worker session's hardware; its "threads" are those of torch."""


class Workers(NamedTuple):
    """Processes that share the questions, each with models of its own."""

    number: int = 1
    threads: int | None = 1
    """Questions that each processes concurrently; None lets each choose once it is loaded."""
    on_ray: bool = False
    address: str | None = None
    """Of the Ray cluster; None makes one on this machine."""

    def described(self, threads: int) -> dict[str, JsonValue]:
        """Their record in a worker session, with so many threads."""
        where = "ray" if self.on_ray else "local"
        return {"workers": self.number, AT_A_TIME: threads, "executor": where}

    def start(
        self, factory: RunnerFactory, *, deterministic: bool, only: int | None = None
    ) -> Executor:
        """
        Args:
            only: number of workers to start; by default all.

        Raises:
            UsageError: Ray is not installed, or threads were asked for on it.
        """
        if not self.on_ray:
            return Pool(
                factory,
                workers=self.number,
                threads=self.threads,
                deterministic=deterministic,
                only=only,
            )
        if self.threads is not None and self.threads > 1:
            raise UsageError(
                "threads (--threads) do not go with Ray (--executor ray): give more workers "
                "(--workers)"
            )
        needed = self.number if only is None else only
        return RayPool(factory, workers=needed, address=self.address, deterministic=deterministic)


class Loaded(NamedTuple):
    """Workers with loaded models that fit the experiment."""

    pool: Executor
    experiment: Experiment
    """As planned with these models; not stored yet."""
    hardware: dict[str, JsonValue]
    at_once: Concurrency
    """Questions that each worker processes concurrently."""


@contextmanager
def loaded(store: Store, plan: ExperimentPlan, start: Callable[[], Executor]) -> Iterator[Loaded]:
    """
    Raises:
        UsageError: an experiment of this name began with other settings or models.
        HopscopeError: a model cannot be loaded.
    """
    known = store.experiments.known(plan.name)
    if known is not None:
        experiment.check(known, plan.settings, arms=plan.arms)
    with start() as pool:
        ready = pool.first()
        if known is not None:
            experiment.check(known, plan.settings, ready.models)
        planned = experiment.plan(plan.name, plan.settings, ready.models, plan.arms)
        yield Loaded(pool, planned, ready.hardware, ready.at_once)


def work(
    store: Store,
    plan: ExperimentPlan,
    loaded: Loaded,
    *,
    retry_failed: bool,
    watching: Callable[[], AbstractContextManager[engine.Report]],
    described: Mapping[str, JsonValue],
    cancelled: threading.Event | None = None,
) -> bool:
    """Store the plan and run its pending items. Returns True if it was stopped, by SIGINT, SIGTERM
    or `cancelled`.

    Args:
        watching: opened once the items are stored; yields a callback for each finished item.
        described: kept with the hardware.
    """
    experiments, name, pool = store.experiments, plan.name, loaded.pool
    experiments.add(loaded.experiment, plan.entries)
    for owner in engine.end_dead_sessions(experiments, name):
        _log.warning(f"another command works on {name}, too ({owner}): the two share its items")
    if retry_failed:
        experiments.retry_failed(name)
    found: dict[str, JsonValue] = {
        "versions": environment.versions(),
        "hardware": {**loaded.hardware, **described},
    }
    worker_session = experiments.begin_session(name, owner=environment.owner(), environment=found)

    def notify() -> None:
        _log.warning(
            f"stopping after the {pool.busy} running items; send the signal again to end them, too"
        )

    # Only the main thread can handle signals.
    main = threading.current_thread() is threading.main_thread()
    try:
        with (
            engine.stopping(notify)
            if main
            else nullcontext(engine.Stop(notify, cancelled)) as stop,
            watching() as report,
        ):
            engine.work(experiments, worker_session, pool, stop=stop, report=report)
    finally:
        experiments.end_session(worker_session)
    return stop.asked
