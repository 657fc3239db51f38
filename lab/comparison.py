"""Tables over experiments in a database: means, differences on the same questions, credit."""

import gc
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopscope.api import parts
from hopscope.api.views.frames import frame
from hopscope.lab import tables as package
from hopscope.lab.answer_metric import answer_metric
from hopscope.lab.appraisal_notes import appraisal_notes
from hopscope.lab.experiments.columnar import ColumnarResults
from hopscope.lab.experiments.results import By, Results
from hopscope.lab.table_forms.table import Cell, Table, stacked
from hopscope.runtime import components
from hopscope.runtime.budget import prices as price_table
from hopscope.runtime.code_files import shown
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Measurement
from hopscope.store.experiments.appraisals import ORIGINAL, select_appraisal
from hopscope.store.experiments.records import Experiment
from hopscope.store.experiments.result_columns import RetrievalColumns
from hopscope.store.store import Store
from hopscope.tracing.statistics.over_questions import Bootstrap, Difference, Estimate

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from hopscope.tracing.scoring.metric import AnswerMetric

_log = logging.getLogger(__name__)

ALL = "all"
TABLES = ("overview", "differences")
"""The default tables."""
DEFAULT_METRICS = ("exact_match", "f1", "contains")
"""The default metrics of answers."""


@dataclass(frozen=True)
class Comparison:
    """Tables over experiments. A notebook shows them."""

    tables: tuple[Table, ...]

    def show(self) -> None:
        """Print the tables, as `hopscope compare` does."""
        from hopscope.lab.table_forms import terminal

        terminal.show(self.tables, None)

    def markdown(self) -> str:
        """The tables in GitHub's Markdown."""
        from hopscope.lab.table_forms.markdown import markdown

        return markdown(self.tables)

    def latex(self) -> str:
        """The tables in LaTeX, for booktabs."""
        from hopscope.lab.table_forms.latex import latex

        return latex(self.tables)

    def to_dicts(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows of one table, by default the first. A number has a key for its value, and
        `_low` and `_high` for its 95 % interval; unmeasured values are None.

        Raises:
            UsageError: there is no such table.
        """
        found = self._table(table)
        return [_plain(found, row) for row in found.rows]

    def to_frame(self, table: str | None = None) -> "pd.DataFrame":
        """The rows of `to_dicts` as a data frame of pandas.

        Raises:
            UsageError: there is no such table, or pandas is not installed.
        """
        rows = self.to_dicts(table)
        return frame(rows, list(dict.fromkeys(key for row in rows for key in row)))

    def __repr__(self) -> str:
        return f"<Comparison: {', '.join(table.name for table in self.tables)}>"

    def _repr_html_(self) -> str:
        from hopscope.api.views.html import html

        return html(self._draw)

    def _draw(self, console: "Console") -> None:
        from hopscope.lab.table_forms import terminal

        terminal.show(self.tables, None, console=console)

    def _table(self, name: str | None) -> Table:
        found = [table for table in self.tables if name in (None, table.name)]
        if not found:
            names = ", ".join(table.name for table in self.tables) or "there are none"
            raise UsageError(f"no table {name!r} in this comparison: {names}")
        return found[0]


def compare(
    *experiments: str,
    store: str | Path | Store | None = None,
    tables: Sequence[str] = TABLES,
    by: By | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    threshold: float = 0.8,
    resamples: int = 2000,
    seed: int = 0,
    appraisal: str = ORIGINAL,
    labels: str | None = None,
    reader: str = parts.TINY,
    entailment: str = "lexical",
    prices: str | Path | None = None,
) -> Comparison:
    """Tables over experiments of a database.

    Args:
        experiments: their names.
        store: the database; by default that of the command line.
        tables: names of `hopscope list tables`, or `all`.
        by: the property that separates rows besides the workflow; by default the experiment, if
            there are several.
        metrics: metrics of answers, as `f1` or `bertscore:FOLDER`.
        threshold: an answer is right from this value of the first metric on.
        resamples: of the bootstrap over questions.
        appraisal: the measurements to show: `original`, `latest`, or a hash.
        labels: the reader that labels passages for eRAG's measures; None for no labels.
        reader, entailment: for metrics that use a model.
        prices: a TOML file of model prices.

    Raises:
        UsageError: there is no such experiment, table, metric or appraisal, or nothing is done yet.
        StoreError: the database cannot be read.
    """
    if not experiments:
        raise UsageError("name an experiment to compare: hopscope.compare(NAME)")
    wanted = _names(tables)
    built = _metrics(metrics or DEFAULT_METRICS, reader=reader, entailment=entailment)
    names = list(dict.fromkeys(experiments))
    with _opened(store) as opened, _uncollected():
        results = _results(
            opened,
            names,
            metrics=built,
            threshold=threshold,
            bootstrap=Bootstrap(resamples=resamples, seed=seed),
            by=by or ("experiment" if len(names) > 1 else "workflow"),
            appraisal=appraisal,
            labels=labels,
            prices=None if prices is None else Path(prices),
        )
        return Comparison(tuple(_tables(results, wanted)))


def columns(*experiments: str, store: Store, resamples: int = 2000) -> ColumnarResults:
    """The results of experiments as columns, for the tables `overview`, `differences` and
    `credit_by_step` with the defaults of `compare`, in a fraction of its time.

    Raises:
        UsageError: there is no such experiment, or nothing is done yet.
    """
    names = list(dict.fromkeys(experiments))
    known = _planned(store, names)
    appraised = {name: store.experiments.appraised(name) for name in names}
    chosen = {name: select_appraisal(appraised[name], ORIGINAL) for name in names}
    shown = {name: each and each.number for name, each in chosen.items()}
    read = [store.experiments.result_columns(name, shown[name]) for name in names]
    if not any(len(part.arm) for part in read):
        raise _nothing(names)

    def retrievals(meter: str) -> list[RetrievalColumns]:
        return [
            store.experiments.retrieval_columns(name, shown[name], meter, part.run)
            for name, part in zip(names, read, strict=True)
        ]

    return ColumnarResults(
        read,
        known,
        metrics=_metrics(DEFAULT_METRICS),
        prices=price_table.prices(None).of,
        bootstrap=Bootstrap(resamples=resamples),
        appraisals=appraisal_notes(appraised, ORIGINAL),
        load_retrievals=retrievals,
    )


def _metrics(
    named: Sequence[str], *, reader: str = parts.TINY, entailment: str = "lexical"
) -> "dict[str, AnswerMetric]":
    return {
        shown(spec): answer_metric(spec, reader=reader, entailment=entailment)
        for spec in dict.fromkeys(named)
    }


def _planned(store: Store, names: Sequence[str]) -> dict[str, Experiment]:
    """The experiments by name, with a warning of those that are not done.

    Raises:
        UsageError: there is none of a name.
    """
    known = {name: store.experiments.find(name) for name in names}
    for name in names:
        progress = store.experiments.progress(name)
        if left := progress.pending + progress.running:
            _log.warning(f"{name}: {left} of {progress.total} are not done yet and left out")
    return known


def _nothing(names: Sequence[str]) -> UsageError:
    return UsageError(f"nothing of {', '.join(names)} is done yet: continue with `hopscope eval`")


@contextmanager
def _opened(store: str | Path | Store | None) -> Iterator[Store]:
    """The store; one that the caller opened stays open."""
    if store is not None and not isinstance(store, str | Path):
        yield store
        return
    with Store.open(store, create=False, reading=True) as opened:
        yield opened


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection: tens of thousands of rows hold no cycles, and searching them for
    cycles takes a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _names(tables: Sequence[str]) -> list[str]:
    if ALL in tables:
        return components.names(package)
    for name in tables:
        components.load(package, name)
    return list(dict.fromkeys(tables))


def _results(
    store: Store,
    names: list[str],
    *,
    metrics: "Mapping[str, AnswerMetric]",
    threshold: float,
    bootstrap: Bootstrap,
    by: By,
    appraisal: str,
    labels: str | None,
    prices: Path | None,
) -> Results:
    known = _planned(store, names)
    rows = [row for name in names for row in store.experiments.result_rows(name, appraisal)]
    if not rows:
        raise _nothing(names)
    verdict = next(iter(metrics))
    erag = None
    if labels is not None:
        from hopscope.tracing.erag.labels import ERAG
        from hopscope.tracing.wrappers.cached import CachedReader

        erag = ERAG(
            CachedReader(parts.reader(labels)),
            metrics[verdict],
            seed=bootstrap.seed,
            prompts=parts.prompts_of(labels) or "",
        )
    return Results(
        rows,
        known,
        metrics=metrics,
        verdict=verdict,
        threshold=threshold,
        bootstrap=bootstrap,
        by=by,
        load_retrievals=lambda: [
            row for name in names for row in store.experiments.retrievals(name, appraisal)
        ],
        load_runs=lambda ids: list(store.load_all(ids)),
        prices=price_table.prices(prices).of,
        appraisals=appraisal_notes(
            {name: store.experiments.appraised(name) for name in names}, appraisal
        ),
        erag=erag,
    )


def _tables(results: Results, names: list[str]) -> list[Table]:
    strata = results.strata()
    found: list[Table] = []
    for name in names:
        _log.info(f"table {name}")
        build = components.load(package, name).build
        parts = [(stratum, build(part)) for stratum, part in strata]
        found += parts[0][1] if strata[0][1] is results else stacked(parts, results.by)
    return found


def _plain(table: Table, row: Mapping[str, Cell]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in table.columns:
        cell = row.get(name)
        if isinstance(cell, Estimate | Difference | Measurement):
            found |= {name: cell.value, f"{name}_low": cell.low, f"{name}_high": cell.high}
        else:
            found[name] = cell
    return found
