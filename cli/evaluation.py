"""What `hopscope eval` does: resolve what was asked for, plan it, work it off, tell of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from hopscope.cli import bench, evaluation_report, progress, render, retrieval
from hopscope.cli.arms import arms
from hopscope.cli.spending import Spending
from hopscope.lab import dataset, environment, experiment, experiment_engine
from hopscope.lab.executor import Executor
from hopscope.lab.experiment import Settings
from hopscope.lab.experiment_estimate import (
    TRIAL,
    Estimate,
    Spent,
    estimate,
    of_done,
    of_item,
    sample,
)
from hopscope.lab.experiment_tally import Tally
from hopscope.lab.ray_workers import RayPool
from hopscope.lab.workers import Done, Pool
from hopscope.runtime.errors import NothingKept, UsageError
from hopscope.runtime.prices import prices
from hopscope.runtime.types import Usage
from hopscope.store.appraised import ORIGINAL
from hopscope.store.experiment_records import Arm, Claimed, Entry, Experiment, Item
from hopscope.store.store import Store

IN_MEMORY = "sqlite://"
AT_A_TIME = "questions_per_worker"
"""Under which a sitting keeps `--threads`; its "threads" are those that a worker computes in."""


class Asked(NamedTuple):
    """What to do, all checked that can be before a model is loaded."""

    name: str
    settings: Settings
    arms: tuple[Arm, ...]
    entries: tuple[Entry, ...]


class Go(NamedTuple):
    """How to do it this time."""

    workers: int
    retry_failed: bool
    dry_run: bool
    db: str | None
    json: bool
    on_ray: bool = False
    address: str | None = None
    """Of the Ray cluster."""
    prices: Path | None = None
    """A table of prices, whose rows stand before the shipped ones."""
    threads: int = 1
    """Questions that each worker is at at a time."""


def resolve(
    data: str,
    *,
    named: Sequence[str],
    options: Mapping[str, str],
    name: str | None,
    corpus: str,
    k: int | None,
    reader: str,
    entailment: str,
    meters: tuple[str, ...],
    rules: tuple[str, ...],
    samples: int,
    seed: int,
    order: dataset.Order | None,
    limit: int | None,
    sample_ids: tuple[str, ...],
    deterministic: bool,
    spend: Spending,
    db: str | None,
) -> Asked:
    """Names and texts as a plan. Without an `order` that of the experiment of that name, if there
    is one: with a larger limit it goes on where it ended.

    Raises:
        UsageError: something is named that there is not.
        CorpusError: the data are broken; the message has the line.
    """
    own = {key: text for key, text in options.items() if "." not in key}
    retrieval.parse(corpus)
    compared = arms(named, own, corpus=corpus, k=k, spend=spend)
    found = dataset.load(data)
    if found.replaced:
        render.note(
            f"{found.replaced:,} questions of {data} hold half of a surrogate pair, such as "
            "\\ud83d alone, which is no character: U+FFFD stands in its place"
        )
    settings = Settings(
        data=data if data in dataset.EMBEDDED else str(Path(data).expanduser().resolve()),
        form=found.form,
        digest=found.digest,
        order=order or _order(name or found.name, db),
        limit=limit,
        sample_ids=sample_ids,
        corpus=corpus,
        reader=reader,
        entailment=entailment,
        seed=seed,
        samples=samples,
        meters=meters,
        rules=rules,
        options={key: text for key, text in options.items() if key not in own},
        deterministic=deterministic,
    )
    bench.measuring(settings).parse()
    return Asked(name or found.name, settings, compared, _chosen(found, settings))


def _order(name: str, db: str | None) -> dataset.Order:
    """That of the experiment of this name; of a new one the questions are stratified."""
    try:
        with Store.open(db, create=False) as store:
            known = store.experiments.known(name)
    except NothingKept:
        known = None
    if known is None:
        return "stratified"
    return "stratified" if known.settings.get("order") == "stratified" else "file"


def again(known: str, *, name: str | None, db: str | None) -> Asked:
    """The plan of an experiment in the store, under another name.

    Raises:
        UsageError: there is none, or its questions are no longer what they were.
        CorpusError: likewise.
    """
    with Store.open(db, create=False) as store:
        before = store.experiments.find(known)
    settings = Settings.model_validate(before.settings)
    found = dataset.load(settings.data)
    if found.digest != settings.digest:
        raise UsageError(f"{settings.data} no longer holds the questions that {known} asked")
    return Asked(name or f"{known}-again", settings, before.arms, _chosen(found, settings))


def execute(asked: Asked, go: Go) -> int:
    """Do what is not done yet; the exit code.

    Raises:
        UsageError: an experiment of that name was begun otherwise, or nothing like it can be begun.
    """
    with _opened(go) as store:
        known = store.experiments.known(asked.name)
        if known is not None:
            experiment.check(known, asked.settings, arms=asked.arms)
            if not (go.dry_run or _left(store, known, asked, retry=go.retry_failed)):
                render.note(f"nothing is left to do of {asked.name}")
                return _tell(store, asked.name, go)
        render.progress("loading the models")
        with _executor(asked, go) as pool:
            ready = pool.first()
            render.progress("")
            if known is not None:
                experiment.check(known, asked.settings, ready.models)
            planned = experiment.plan(asked.name, asked.settings, ready.models, asked.arms)
            if go.dry_run:
                found = _estimates(store, pool, planned, asked, go)
                evaluation_report.show_estimates(found, asked.name, json=go.json)
                evaluation_report.tell_memory(ready.hardware, go.workers)
                return 0
            store.experiments.add(planned, asked.entries)
            hardware = {
                **ready.hardware,
                "workers": go.workers,
                AT_A_TIME: go.threads,
                "executor": "ray" if go.on_ray else "local",
            }
            stopped = _work(store, pool, planned, go, hardware)
        return 130 if stopped else _tell(store, asked.name, go)


def _opened(go: Go) -> Store:
    """The store; a dry run makes none, and where there is none goes by an empty one."""
    if not go.dry_run:
        return Store.open(go.db)
    try:
        return Store.open(go.db, create=False)
    except NothingKept:
        return Store.open(IN_MEMORY)


def _executor(asked: Asked, go: Go) -> Executor:
    """What works the items off, all its workers begun; for a dry run one of them."""
    if go.on_ray and go.threads > 1:
        raise UsageError("--threads does not go with --executor ray: give more --workers")
    opening = bench.Opening(asked.settings, asked.name, asked.arms, go.threads)
    deterministic = asked.settings.deterministic
    needed = 1 if go.dry_run else go.workers
    if go.on_ray:
        address = go.address
        return RayPool(opening, workers=needed, address=address, deterministic=deterministic)
    return Pool(
        opening,
        workers=go.workers,
        threads=go.threads,
        deterministic=deterministic,
        only=needed,
    )


def _work(
    store: Store, pool: Executor, planned: Experiment, go: Go, hardware: Mapping[str, JsonValue]
) -> bool:
    """Sit down and work; whether somebody stopped it."""
    experiments, name = store.experiments, planned.name
    for owner in experiment_engine.bury_the_dead(experiments, name):
        render.note(
            f"another command is at {name}, too ({owner}): each does what the other has not"
        )
    if go.retry_failed:
        experiments.retry_failed(name)
    found: dict[str, JsonValue] = {
        "versions": environment.versions(),
        "hardware": dict(hardware),
    }
    sitting = experiments.sit(name, owner=environment.owner(), environment=found)
    tally = _tally(store, name)
    board = progress.Board(tally, prices(go.prices).of(planned.reader))

    def told() -> None:
        render.note(f"stopping after the {pool.busy} begun; once more to leave them, too")

    try:
        with experiment_engine.stopping(told) as stop, progress.showing(board) as lines:

            def report(claimed: Claimed, done: Done) -> None:
                board.add(tally.add(claimed, done))
                if lines is not None:
                    lines.tick()

            experiment_engine.work(experiments, sitting, pool, stop=stop, report=report)
    finally:
        experiments.leave(sitting)
    if stop.asked:
        found_now = experiments.progress(name)
        render.note(
            f"stopped: {found_now.done} of {found_now.total} are done and kept; the same command "
            "goes on with the rest"
        )
    return stop.asked


def _left(store: Store, known: Experiment, asked: Asked, *, retry: bool) -> bool:
    """Whether there is anything to do for an experiment that is in the store, or to find out."""
    progress_now = store.experiments.progress(known.name)
    if progress_now.pending + progress_now.running or (retry and progress_now.failed):
        return True
    if any(arm not in known.arms for arm in asked.arms):
        return True
    if not experiment.same_names(known, asked.settings):
        return True  # whether they are what they were shows when they are loaded
    there = {(item.entry.hash, item.arm) for item in store.experiments.items(known.name)}
    return any(
        (entry.hash, arm.label) not in there for entry in asked.entries for arm in asked.arms
    )


def _tell(store: Store, name: str, go: Go) -> int:
    """Show how it stands; the exit code."""
    tally = _tally(store, name)
    found = store.experiments.find(name)
    if go.json:
        evaluation_report.print_json(store, found)
    else:
        evaluation_report.show(tally, prices(go.prices).of(found.reader), name)
    failed = store.experiments.items(name, status="failed")
    if failed:
        evaluation_report.say_why(failed)
    others = store.experiments.progress(name).running
    if others:
        render.note(f"{others} are with another command")
    return 1 if failed else 0


def _tally(store: Store, name: str) -> Tally:
    experiments = store.experiments
    spent = {
        run_id: sum((appraisal.usage for appraisal in found), Usage())
        for run_id, found in experiments.appraisals(name).items()
    }
    gains = experiments.credits(
        name, meters=["seper"], rules=["total"], passages=False, appraisal=ORIGINAL
    )
    return Tally(experiments.items(name), gains, spent)


def _estimates(
    store: Store, pool: Executor, planned: Experiment, asked: Asked, go: Go
) -> list[Estimate]:
    """By the items of the arm that are stored, else by a trial."""
    known = store.experiments.known(asked.name)
    items = store.experiments.items(asked.name) if known else []
    measured = store.experiments.appraisals(asked.name) if known else {}

    def spent(item: Item) -> Spent | None:
        appraisals = measured.get(item.outcome.run_id, []) if item.outcome else []
        usage = sum((appraisal.usage for appraisal in appraisals), Usage())
        return of_item(item, usage, sum(appraisal.seconds for appraisal in appraisals))

    found: list[Estimate] = []
    threads_then = _threads(store, asked.name) if known else 1
    price = prices(go.prices).of(planned.reader)
    hashes = {entry.hash for entry in asked.entries}
    for arm in asked.arms:
        own = [item for item in items if item.arm == arm.label and item.entry.hash in hashes]
        done = sum(item.status == "ok" or item.status == "failed" for item in own)
        costs, basis = [cost for item in own if (cost := spent(item))], "stored runs"
        threads = threads_then
        if not costs:
            render.progress(f"trying {arm.label}")
            wanted = sample(arm, asked.entries, max(TRIAL, go.threads))
            tried = experiment_engine.trial(pool, wanted)
            threads = min(go.threads, len(tried))
            costs = [cost for _, done_now in tried if (cost := of_done(done_now))]
            basis = f"trial of {len(tried)} questions"
            evaluation_report.say_trial_failed(arm.label, [done_now for _, done_now in tried])
        found.append(
            estimate(
                arm.label,
                len(asked.entries) - done,
                costs,
                basis=basis,
                workers=go.workers,
                threads=threads,
                price=price,
            )
        )
    render.progress("")
    return found


def _threads(store: Store, name: str) -> int:
    """Questions that a worker was at at a time when an experiment was last worked on."""
    last = store.experiments.sittings(name)[-1:]
    hardware = last[0].environment.get("hardware") if last else None
    threads = hardware.get(AT_A_TIME) if isinstance(hardware, dict) else None
    return threads if isinstance(threads, int) else 1


def _chosen(found: dataset.Dataset, settings: Settings) -> tuple[Entry, ...]:
    return tuple(found.choose(limit=settings.limit, ids=settings.sample_ids, order=settings.order))
