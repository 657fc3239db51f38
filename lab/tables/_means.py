"""What the tables of means and differences need of results, whether they are rows or columns."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from hopscope.lab.experiments.results import Size
from hopscope.tracing.statistics.over_questions import Bootstrap, Column


class Heading(Protocol):
    """How tables show a measure."""

    @property
    def name(self) -> str: ...
    @property
    def heading(self) -> str: ...
    @property
    def digits(self) -> int: ...


class Means(Protocol):
    """`Results`, or `ColumnarResults`."""

    @property
    def systems(self) -> tuple[str, ...]: ...
    @property
    def sizes(self) -> Mapping[str, Size]: ...
    @property
    def measures(self) -> Sequence[Heading]: ...
    @property
    def columns(self) -> Mapping[tuple[str, str], Column]: ...
    @property
    def bootstrap(self) -> Bootstrap: ...
    @property
    def appraisals(self) -> tuple[str, ...]: ...
