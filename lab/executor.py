"""What works off the items of an experiment: processes of this machine, or actors of a cluster."""

from types import TracebackType
from typing import Protocol, Self

from hopscope.lab.workers import Done, Ready
from hopscope.store.experiment_records import Claimed


class Executor(Protocol):
    """Workers, each with a bench. Every item that was submitted comes back once: with what became
    of it, or with the error that took its place."""

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
            UsageError, HopscopeError: it could not load its models.
        """
        ...

    @property
    def idle(self) -> int:
        """How many more items it can take."""
        ...

    @property
    def busy(self) -> int:
        """Items given out."""
        ...

    def submit(self, claimed: Claimed) -> None:
        """Give out an item, of which `idle` must not be 0."""
        ...

    def wait(self, seconds: float) -> list[tuple[Claimed, Done]]:
        """What was done, as soon as there is any; nothing if that takes longer.

        Raises:
            UsageError, HopscopeError: a worker could not load its models.
        """
        ...
