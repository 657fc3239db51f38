"""`hopscope compare`: tables over experiments, with intervals and tests."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.cli import metrics, render, tables, wiring
from hopscope.cli.run import Database, EntailmentSpec, Json, Seed, ThinkingSpec
from hopscope.cli.score import DEFAULT, MetricSpecs

if TYPE_CHECKING:
    from hopscope.lab.results import Results
    from hopscope.lab.tables._table import Table
    from hopscope.store.store import Store
    from hopscope.tracing.answer_metrics._metric import AnswerMetric

ALL = "all"
ORIGINAL = "original"
TABLES = ["overview", "differences"]


class By(StrEnum):
    workflow = "workflow"
    experiment = "experiment"
    reader = "reader"
    retriever = "retriever"
    seed = "seed"
    hops = "hops"
    kind = "kind"


Names = Annotated[
    list[str],
    typer.Argument(
        metavar="EXP...", envvar="HOPSCOPE_EXPERIMENTS", help="Experiments of `hopscope eval`."
    ),
]


def compare(
    experiments: Names,
    by: Annotated[
        By | None,
        typer.Option(
            envvar="HOPSCOPE_COMPARE_BY",
            help="What tells rows apart, besides the workflow: hops and kind are of questions, the "
            "others of experiments. By default the experiment, where there are several.",
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            "-t",
            metavar="NAME",
            help="Which tables: see `hopscope list tables`, or all; repeatable. By default "
            f"{', '.join(TABLES)}. [env var: HOPSCOPE_TABLES, one a line]",
        ),
    ] = None,
    metric: MetricSpecs = None,
    threshold: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            envvar="HOPSCOPE_THRESHOLD",
            help="An answer is right from this value of the first metric on.",
        ),
    ] = 0.8,
    resamples: Annotated[
        int,
        typer.Option(min=100, envvar="HOPSCOPE_RESAMPLES", help="Of the bootstrap over questions."),
    ] = 2000,
    reader: Annotated[
        str | None,
        typer.Option(
            "--reader",
            metavar="READER",
            envvar="HOPSCOPE_COMPARE_READER",
            help="Label passages by what this reader answers from each alone, so that the table "
            "correlations has eRAG's measures. Otherwise no model is asked.",
        ),
    ] = None,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    appraisal: Annotated[
        str,
        typer.Option(
            "--appraisal",
            metavar="HASH",
            envvar="HOPSCOPE_APPRAISAL",
            help="Which measurements to show, where `hopscope credit` has made more: original (the "
            "experiment's own), latest, or those of a hash that the table's note names.",
        ),
    ] = ORIGINAL,
    prices: Annotated[
        Path | None,
        typer.Option(
            "--prices", metavar="FILE", envvar="HOPSCOPE_PRICES", help="What models cost, as TOML."
        ),
    ] = None,
    seed: Seed = 0,
    db: Database = None,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, numbers in full.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX, for booktabs.")] = False,
) -> None:
    """Compare the workflows of experiments: means, differences on the same questions, credit."""
    from hopscope.runtime.errors import UsageError
    from hopscope.store.store import Store

    formats = {"json": json, "csv": csv, "markdown": markdown, "latex": latex}
    asked = [name for name, wanted in formats.items() if wanted]
    reader = reader and wiring.thoughtful(reader, thinking)
    if len(asked) > 1:
        raise UsageError(f"--{asked[0]} and --{asked[1]} exclude each other")
    names = _table_names(table or wiring.lines("HOPSCOPE_TABLES") or TABLES)
    specs = list(dict.fromkeys(metric or wiring.lines("HOPSCOPE_METRICS") or DEFAULT))
    built = {
        spec: metrics.metric(spec, reader=reader or wiring.TINY, entailment=entailment)
        for spec in specs
    }
    chosen = by or (By.experiment if len(set(experiments)) > 1 else By.workflow)
    with Store.open(db, create=False, reading=True) as store, _uncollected():
        results = _results(
            store,
            list(dict.fromkeys(experiments)),
            metrics=built,
            threshold=threshold,
            resamples=resamples,
            seed=seed,
            by=chosen,
            appraisal=appraisal,
            reader=reader,
            prices=prices,
        )
        found = _tables(results, names)
    tables.show(found, asked[0] if asked else None)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Rows come by the ten thousand and hold no cycles; looking for some in them again and again
    takes a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _table_names(asked: list[str]) -> list[str]:
    from hopscope.lab import tables as package
    from hopscope.runtime import components

    if ALL in asked:
        return components.names(package)
    for name in asked:
        components.load(package, name)
    return list(dict.fromkeys(asked))


def _results(
    store: "Store",
    names: list[str],
    *,
    metrics: "dict[str, AnswerMetric]",
    threshold: float,
    resamples: int,
    seed: int,
    by: By,
    appraisal: str,
    reader: str | None,
    prices: Path | None,
) -> "Results":
    """
    Raises:
        UsageError: there is no such experiment or appraisal, or nothing of them is done.
    """
    from hopscope.lab.results import Results
    from hopscope.lab.statistics import Bootstrap
    from hopscope.runtime import prices as price_table
    from hopscope.runtime.errors import UsageError

    known = {name: store.experiments.find(name) for name in names}
    for name in names:
        progress = store.experiments.progress(name)
        if left := progress.pending + progress.running:
            render.note(f"{name}: {left} of {progress.total} are not done yet and left out")
    figures = [row for name in names for row in store.experiments.figures(name, appraisal)]
    if not figures:
        raise UsageError(f"nothing of {', '.join(names)} is done yet: go on with `hopscope eval`")
    verdict = next(iter(metrics))
    labels = None
    if reader is not None:
        from hopscope.tracing.caching import CachedReader
        from hopscope.tracing.erag import ERAG

        labels = ERAG(CachedReader(wiring.reader(reader)), metrics[verdict], seed=seed)
    return Results(
        figures,
        known,
        metrics=metrics,
        verdict=verdict,
        threshold=threshold,
        bootstrap=Bootstrap(resamples=resamples, seed=seed),
        by=by.value,
        load_retrievals=lambda: [
            row for name in names for row in store.experiments.retrievals(name, appraisal)
        ],
        load_runs=lambda ids: [store.load(run_id) for run_id in ids],
        prices=price_table.prices(prices).of,
        appraisals=_told(store, names, appraisal),
        erag=labels,
    )


def _told(store: "Store", names: list[str], appraisal: str) -> tuple[str, ...]:
    """By what the utilities shown were measured, and what else there is; a note for each
    experiment."""
    from hopscope.store.appraised import chosen

    notes = []
    for name in names:
        found = store.experiments.appraised(name)
        shown = chosen(found, appraisal)
        if shown is None:
            continue
        provenance = shown.provenance
        settings = {**provenance.settings, "seed": provenance.seed}
        how = ", ".join(f"{key}={value}" for key, value in sorted(settings.items()))
        when = f", {shown.last:%Y-%m-%d %H:%M}" if shown.last else ""
        which = ", the original" if shown is found[0] else ""
        note = (
            f"SePer and GroGU{f' of {name}' if len(names) > 1 else ''}: appraisal "
            f"{provenance.settings_hash[:8]}{which}, by {provenance.reader} ({how}), "
            f"{shown.runs} runs{when}"
        )
        if others := [e.provenance.settings_hash[:8] for e in found if e is not shown]:
            note += f"; also measured: {', '.join(others)} (--appraisal)"
        notes.append(note)
    return tuple(notes)


def _tables(results: "Results", names: list[str]) -> "list[Table]":
    from hopscope.lab import tables as package
    from hopscope.lab.tables._table import stacked
    from hopscope.runtime import components

    strata = results.strata()
    found: list[Table] = []
    for name in names:
        render.progress(f"table {name}")
        build = components.load(package, name).build
        parts = [(stratum, build(part)) for stratum, part in strata]
        found += parts[0][1] if strata[0][1] is results else stacked(parts, results.by)
    render.progress("")
    return found
