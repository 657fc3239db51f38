"""The order in which the questions of a file are taken, and which of them a limit takes."""

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Literal, TypeVar

from hopscope.runtime.types import Record, digest

Order = Literal["file", "stratified"]
"""`file` takes questions as they stand there, `stratified` as the function of that name says."""
SEED = "hopscope:order:0"
"""Of the order: another would make another of the same questions."""

Item = TypeVar("Item")


class Sample(Record):
    """Which questions of a file were taken."""

    order: Order
    limit: int
    of: int
    """Questions there are."""
    questions: tuple[str | int, ...]
    """Those taken, in the order they were: their ids, or numbers of their records from 1."""


def sample(
    items: Sequence[Item],
    limit: int | None,
    order: Order,
    *,
    stratum: Callable[[Item], tuple[str, ...]],
    key: Callable[[Item], str],
    named: Callable[[Item], str | int],
) -> tuple[Sequence[Item], Sample | None]:
    """The first `limit` items in that order, and a record of which they are; without a limit all
    as they stand, and no record.

    Args:
        stratum: the kind of an item.
        key: what tells an item from others, on which its place hangs.
        named: how the record names an item.
    """
    if limit is None:
        return items, None
    ordered = items if order == "file" else stratified(items, stratum=stratum, key=key)
    taken = ordered[:limit]
    names = tuple(named(item) for item in taken)
    return taken, Sample(order=order, limit=limit, of=len(items), questions=names)


def stratified(
    items: Iterable[Item], *, stratum: Callable[[Item], tuple[str, ...]], key: Callable[[Item], str]
) -> list[Item]:
    """The items in an order each beginning of which has its share of every stratum and is drawn by
    chance within them.

    The order hangs on the items alone: it is the same for every seed of sampling, so that
    experiments of different seeds ask the same questions, and a larger limit only adds some.
    """
    strata: dict[tuple[str, ...], list[Item]] = {}
    for item in items:
        strata.setdefault(stratum(item), []).append(item)
    placed: list[tuple[float, tuple[str, ...], Item]] = []
    for kind, own in strata.items():
        own.sort(key=lambda item: digest(SEED, key(item)))
        # Evenly spread over the whole: of a larger stratum some come earlier.
        placed += [((at + 0.5) / len(own), kind, item) for at, item in enumerate(own)]
    return [item for _, _, item in sorted(placed, key=itemgetter(0, 1))]
