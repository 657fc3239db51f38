"""The port of workers that run items: processes of this machine, or actors of a cluster."""

from types import TracebackType
from typing import Protocol, Self

from hopscope.lab.experiments.workers import ItemResult, Ready
from hopscope.store.experiments.records import ClaimedItem


class Executor(Protocol):
    """Workers, each with a runner. Every submitted item comes back exactly once, with its result
    or an error."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """End the workers, also in the middle of an item."""
        ...

    def first(self) -> Ready:
        """Wait until a worker is ready.

        Raises:
            UsageError, HopscopeError: a worker could not load its models.
        """
        ...

    @property
    def idle(self) -> int:
        """Number of further items that the workers can take."""
        ...

    @property
    def busy(self) -> int:
        """Number of submitted items that have not come back."""
        ...

    def submit(self, claimed: ClaimedItem) -> None:
        """Hand an item to a worker; requires that `idle` is not 0."""
        ...

    def wait(self, seconds: float) -> list[tuple[ClaimedItem, ItemResult]]:
        """Results, as soon as there are any; an empty list after `seconds` without one.

        Raises:
            UsageError, HopscopeError: a worker could not load its models.
        """
        ...
