"""The work of `hopscope eval` on a plan, with its progress and its summary."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from hopscope.api import answering
from hopscope.api.views import render
from hopscope.cli.views import evaluation_report, progress
from hopscope.cli.views.notes import Noted
from hopscope.lab.experiments import estimate, execution, planning
from hopscope.lab.experiments.engine import Report
from hopscope.lab.experiments.execution import Workers
from hopscope.lab.experiments.executor import Executor
from hopscope.lab.experiments.item_runner import ItemRunnerFactory
from hopscope.lab.experiments.planning import ExperimentPlan
from hopscope.lab.experiments.tally import Tally
from hopscope.lab.experiments.workers import ItemResult
from hopscope.runtime import code_files
from hopscope.runtime.budget.prices import Price, prices
from hopscope.runtime.errors import MissingDatabaseError
from hopscope.runtime.texts.counting import counted
from hopscope.store.experiments.records import ClaimedItem
from hopscope.store.store import Store

IN_MEMORY = "sqlite://"


class Execution(NamedTuple):
    """The options of one command that are no settings of the experiment."""

    workers: Workers
    retry_failed: bool
    dry_run: bool
    db: str | None
    json: bool
    prices: Path | None = None
    """A table of prices, whose rows stand before the shipped ones."""
    trace_content: bool = True
    """Whether spans carry questions, prompts, passages and answers."""

    def price(self, reader: str) -> Price:
        return prices(self.prices).of(reader)


def execute(plan: ExperimentPlan, options: Execution) -> int:
    """Run the remaining items, or estimate them. Returns the exit code.

    Raises:
        UsageError: an experiment of this name has other settings, or its settings are invalid.
    """
    name, workers = plan.name, options.workers

    def start() -> Executor:
        opening = Noted(
            ItemRunnerFactory(
                plan.settings,
                name,
                plan.arms,
                1 if workers.on_ray else workers.threads,
                code_files.known(),
                questions=-(-len(plan.entries) * len(plan.arms) // workers.number),
                workers=workers.number,
                trace_content=options.trace_content,
            )
        )
        only = 1 if options.dry_run else None
        return workers.start(opening, deterministic=plan.settings.deterministic, only=only)

    with _opened(options) as store:
        finished = planning.is_finished(store, plan, retry_failed=options.retry_failed)
        if finished and not options.dry_run:
            render.note(f"nothing is left to do of {name}")
            return _tell(store, name, options)
        render.progress("loading the models")
        with execution.loaded(store, plan, start) as loaded:
            render.progress("")
            if workers.threads is None:
                evaluation_report.tell_concurrency(loaded.at_once, workers.number)
            price = options.price(loaded.experiment.reader)
            if options.dry_run:
                found = estimate.of_plan(store, plan, loaded, workers=workers, price=price)
                render.progress("")
                evaluation_report.show_estimates(found, name, json=options.json)
                evaluation_report.tell_memory(loaded.hardware, workers.number)
                return 0

            @contextmanager
            def watching() -> Iterator[Report]:
                tally = Tally.of(store, name)
                board = progress.Board(tally, price)
                with progress.showing(board) as lines:

                    def report(claimed: ClaimedItem, done: ItemResult) -> None:
                        board.add(tally.add(claimed, done))
                        if lines is not None:
                            lines.tick()

                    yield report

            stopped = execution.work(
                store,
                plan,
                loaded,
                retry_failed=options.retry_failed,
                watching=watching,
                described=workers.described(loaded.at_once.threads),
            )
            if stopped:
                now = store.experiments.progress(name)
                render.note(
                    f"stopped: {now.done} of {now.total} are done and kept; the same command "
                    "resumes"
                )
        return 130 if stopped else _tell(store, name, options)


def _opened(options: Execution) -> Store:
    """The store; a dry run creates none and uses an empty one instead."""
    if not options.dry_run:
        return Store.open(options.db)
    try:
        return Store.open(options.db, create=False)
    except MissingDatabaseError:
        return Store.open(IN_MEMORY)


def _tell(store: Store, name: str, options: Execution) -> int:
    """Print the summary. Returns the exit code."""
    found = store.experiments.find(name)
    if options.json:
        evaluation_report.print_json(store, found)
    else:
        evaluation_report.show(Tally.of(store, name), options.price(found.reader), name)
    failed = store.experiments.items(name, status="failed")
    if failed:
        evaluation_report.say_why(failed)
    answering.tell_forced(store.experiments.thoughts(name))
    others = store.experiments.progress(name).running
    if others:
        render.note(
            f"{counted(others, 'question is', 'questions are')} with another command, which "
            "answers and stores in this experiment what this one left: wait for its end, then "
            f"look with `hopscope compare {quote(name)}`; should it die, the same command takes "
            "over"
        )
    return 1 if failed else 0
