"""Estimates the cost of the remaining items from finished items or a trial."""

import logging
from collections.abc import Sequence

from hopscope.lab.experiments import engine
from hopscope.lab.experiments.execution import AT_A_TIME, Loaded, Workers
from hopscope.lab.experiments.planning import ExperimentPlan
from hopscope.lab.experiments.workers import ItemResult
from hopscope.runtime.budget.prices import Price
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Record, Usage
from hopscope.store.experiments.records import Arm, ClaimedItem, DatasetEntry, Item
from hopscope.store.store import Store

_log = logging.getLogger(__name__)

TRIAL = 3
"""Questions of a trial, for each arm without finished items."""


class Spent(Record):
    """The cost of one item, measuring included."""

    usage: Usage
    queries: int
    seconds: float


class CostEstimate(Record):
    """The estimated cost of an arm's remaining items, from `n` items."""

    arm: str
    items: int
    """Number of remaining items."""
    n: int
    """Items that the estimate is made from; 0 if all failed, and then nothing is estimated."""
    basis: str
    """Source of these items."""
    calls: float | None
    input_tokens: float | None
    output_tokens: float | None
    thinking_tokens: float | None
    """Output tokens of thoughts, included in `output_tokens`."""
    seconds: float | None
    """Wall time with all workers."""
    cost: float | None
    """None also if the reader's price or its tokens are unknown."""


def estimate(
    arm: str,
    items: int,
    spent: Sequence[Spent],
    *,
    basis: str,
    workers: int,
    threads: int = 1,
    price: Price,
) -> CostEstimate:
    """The mean cost of the items, times the number of remaining items.

    Args:
        threads: questions each worker processed concurrently in the measured items. Their seconds
            already include the slowdown by concurrency.
    """
    n = len(spent)

    def scaled(amounts: Sequence[float]) -> float | None:
        return sum(amounts) / n * items if n else None

    known = [price.of(each.usage, queries=each.queries) for each in spent]
    costs = [cost for cost in known if cost is not None]
    counted = not any(each.usage.uncounted for each in spent)
    seconds = scaled([each.seconds for each in spent])
    return CostEstimate(
        arm=arm,
        items=items,
        n=n,
        basis=basis,
        calls=scaled([each.usage.calls for each in spent]),
        input_tokens=scaled([each.usage.input_tokens for each in spent]) if counted else None,
        output_tokens=scaled([each.usage.output_tokens for each in spent]) if counted else None,
        thinking_tokens=scaled([each.usage.thinking_tokens for each in spent]) if counted else None,
        seconds=None if seconds is None else seconds / max(1, min(workers * threads, items)),
        cost=None if price.model is None or len(costs) < n else scaled(costs),
    )


def of_done(done: ItemResult) -> Spent | None:
    """The cost of a trial item; None if it failed."""
    if done.run is None or done.error is not None:
        return None
    return Spent(
        usage=done.run.usage + sum((a.usage for a in done.appraisals), Usage()),
        queries=len(done.run.retrievals),
        seconds=done.run.seconds + sum(a.seconds for a in done.appraisals),
    )


def of_item(item: Item, usage: Usage, seconds: float) -> Spent | None:
    """The cost of a stored item plus that of measuring it; None if it failed or is not done."""
    if item.outcome is None or item.status != "ok":
        return None
    return Spent(
        usage=item.outcome.usage + usage,
        queries=item.outcome.retrievals,
        seconds=item.outcome.seconds + seconds,
    )


def sample(arm: Arm, entries: Sequence[DatasetEntry], n: int = TRIAL) -> list[ClaimedItem]:
    """A few questions spread over the dataset, as its parts often differ."""
    step = max(1, len(entries) // n)
    return [
        ClaimedItem(entry=entry, arm=arm, position=place)
        for place, entry in enumerate(entries[step // 2 :: step][:n])
    ]


def of_plan(
    store: Store, plan: ExperimentPlan, loaded: Loaded, *, workers: Workers, price: Price
) -> list[CostEstimate]:
    """One for each arm: from its stored items, or else from a trial, of which nothing is kept."""
    known = store.experiments.known(plan.name)
    items = store.experiments.items(plan.name) if known else []
    measured = store.experiments.appraisals(plan.name) if known else {}

    def spent(item: Item) -> Spent | None:
        appraisals = measured.get(item.outcome.run_id, []) if item.outcome else []
        usage = sum((appraisal.usage for appraisal in appraisals), Usage())
        return of_item(item, usage, sum(appraisal.seconds for appraisal in appraisals))

    found: list[CostEstimate] = []
    threads_then = (at_once(store, plan.name) if known else None) or 1
    hashes = {entry.hash for entry in plan.entries}
    for arm in plan.arms:
        own = [item for item in items if item.arm == arm.label and item.entry.hash in hashes]
        done = sum(item.status in ("ok", "failed") for item in own)
        costs, basis = [cost for item in own if (cost := spent(item))], "stored runs"
        threads = threads_then
        if not costs:
            _log.info(f"trying {arm.label}")
            wanted = sample(arm, plan.entries, max(TRIAL, workers.threads or 0))
            tried = [done_now for _, done_now in engine.trial(loaded.pool, wanted)]
            threads = min(loaded.at_once.threads, len(tried))
            costs = [cost for done_now in tried if (cost := of_done(done_now))]
            basis = f"trial of {counted(len(tried), 'question')}"
            failed = next((done_now.error for done_now in tried if done_now.error), None)
            if failed is not None:
                _log.warning(f"a trial of {arm.label} failed: {failed.message}")
        found.append(
            estimate(
                arm.label,
                len(plan.entries) - done,
                costs,
                basis=basis,
                workers=workers.number,
                threads=threads,
                price=price,
            )
        )
    return found


def at_once(store: Store, name: str) -> int | None:
    """Questions that each worker processed concurrently when the experiment was last worked on;
    None if that was not recorded."""
    last = store.experiments.worker_sessions(name)[-1:]
    hardware = last[0].environment.get("hardware") if last else None
    threads = hardware.get(AT_A_TIME) if isinstance(hardware, dict) else None
    return threads if isinstance(threads, int) else None
