"""What is left of an experiment will cost, by what its items cost so far or in a trial."""

from collections.abc import Sequence

from hopscope.lab.workers import Done
from hopscope.runtime.prices import Price
from hopscope.runtime.types import Record, Usage
from hopscope.store.experiment_records import Arm, Claimed, Entry, Item

TRIAL = 3
"""Questions that are asked of each arm when nothing is known of it."""


class Spent(Record):
    """What one item took, measuring included."""

    usage: Usage
    queries: int
    seconds: float


class Estimate(Record):
    """What an arm's items that are left will take, going by `n` of them."""

    arm: str
    items: int
    """Left to do."""
    n: int
    """Items that it is an estimate from; 0 when all failed, and then nothing is estimated."""
    basis: str
    """Where these are from."""
    calls: float | None
    input_tokens: float | None
    output_tokens: float | None
    thinking_tokens: float | None
    """Those of the output tokens that are thoughts."""
    seconds: float | None
    """With all workers at work."""
    cost: float | None
    """None, too, where the reader's price or its tokens are not known."""


def estimate(
    arm: str,
    items: int,
    spent: Sequence[Spent],
    *,
    basis: str,
    workers: int,
    threads: int = 1,
    price: Price,
) -> Estimate:
    """The mean of what was spent, times what is left.

    Args:
        threads: questions that each worker was at at a time when that was spent. Each of them took
            longer for that, so that nobody need know how much is saved.
    """
    n = len(spent)

    def scaled(amounts: Sequence[float]) -> float | None:
        return sum(amounts) / n * items if n else None

    found = [price.of(each.usage, queries=each.queries) for each in spent]
    costs = [cost for cost in found if cost is not None]
    counted = not any(each.usage.uncounted for each in spent)
    seconds = scaled([each.seconds for each in spent])
    return Estimate(
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


def of_done(done: Done) -> Spent | None:
    """What a trial took; None if it failed."""
    if done.run is None or done.error is not None:
        return None
    return Spent(
        usage=done.run.usage + sum((a.usage for a in done.appraisals), Usage()),
        queries=sum(step.query is not None for step in done.run.steps),
        seconds=done.run.seconds + sum(a.seconds for a in done.appraisals),
    )


def of_item(item: Item, usage: Usage, seconds: float) -> Spent | None:
    """What a stored item took, its measuring as given; None if it failed or is not done."""
    if item.outcome is None or item.status != "ok":
        return None
    return Spent(
        usage=item.outcome.usage + usage,
        queries=item.outcome.retrievals,
        seconds=item.outcome.seconds + seconds,
    )


def sample(arm: Arm, entries: Sequence[Entry], n: int = TRIAL) -> list[Claimed]:
    """A few questions from all over the dataset: its parts often differ."""
    step = max(1, len(entries) // n)
    return [
        Claimed(entry=entry, arm=arm, position=place)
        for place, entry in enumerate(entries[step // 2 :: step][:n])
    ]
