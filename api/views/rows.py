"""Rows of records that print as a table."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from hopscope.runtime.types import Record

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

RowT = TypeVar("RowT", bound=Record)


class Rows(Sequence[RowT], Generic[RowT]):
    """Rows that print as a table. Threads may share them."""

    def __init__(
        self,
        kind: type[RowT],
        rows: Iterable[RowT],
        draw: "Callable[[Sequence[RowT], Console | None], None]",
    ) -> None:
        self._kind, self._rows, self._show = kind, tuple(rows), draw

    @overload
    def __getitem__(self, index: int) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RowT, ...]: ...
    def __getitem__(self, index: int | slice) -> RowT | tuple[RowT, ...]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self)} rows of {self._kind.__name__}>"

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries of plain values."""
        return [row.model_dump(mode="json") for row in self._rows]

    def to_frame(self) -> "pd.DataFrame":
        """The rows as a data frame of pandas; unmeasured values are missing.

        Raises:
            UsageError: pandas is not installed.
        """
        from hopscope.api.views.frames import frame

        return frame(self.to_dicts(), list(self._kind.model_fields))

    def show(self) -> None:
        """Print the rows as a table."""
        self._show(self._rows, None)

    def _repr_html_(self) -> str:
        from hopscope.api.views.html import html

        return html(lambda console: self._show(self._rows, console))
