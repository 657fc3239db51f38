"""The order of a file's questions, and the selection under a limit."""

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Literal, TypeVar

from hopscope.runtime.types import Record, digest

Order = Literal["file", "stratified"]
"""`file` keeps the file's order; `stratified` is the function of that name."""
SEED = "hopscope:order:0"
"""The salt of the order's hash: another salt gives another order of the same questions."""

Item = TypeVar("Item")


class Sample(Record):
    """The questions selected from a file."""

    order: Order
    limit: int
    of: int
    """The number of questions in the file."""
    questions: tuple[str | int, ...]
    """The selected questions in order: their ids, or numbers of their records from 1."""


def sample(
    items: Sequence[Item],
    limit: int | None,
    order: Order,
    *,
    stratum: Callable[[Item], tuple[str, ...]],
    key: Callable[[Item], str],
    named: Callable[[Item], str | int],
) -> tuple[Sequence[Item], Sample | None]:
    """The first `limit` items in that order, and a record of the selection; without a limit all
    items in their given order, and no record.

    Args:
        stratum: the kind of an item.
        key: the identity of an item, which determines its place.
        named: the name of an item in the record.
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
    """The items in an order in which every prefix has each stratum in proportion, with random
    items of each.

    The order depends on the items alone, not on a seed, so that experiments of different seeds use
    the same questions, and a larger limit only adds some.
    """
    strata: dict[tuple[str, ...], list[Item]] = {}
    for item in items:
        strata.setdefault(stratum(item), []).append(item)
    placed: list[tuple[float, tuple[str, ...], Item]] = []
    for kind, own in strata.items():
        own.sort(key=lambda item: digest(SEED, key(item)))
        # Each stratum is spread evenly over the order; a larger one has earlier items.
        placed += [((at + 0.5) / len(own), kind, item) for at, item in enumerate(own)]
    return [item for _, _, item in sorted(placed, key=itemgetter(0, 1))]
