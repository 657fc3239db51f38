"""`hopscope export`: experiments in forms that other tools read."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from hopscope.cli import metrics, render, retrieval, wiring
from hopscope.cli.run import Database, EntailmentSpec, Options, Samples, Seed, ThinkingSpec
from hopscope.cli.written import Overwrite, check_free

if TYPE_CHECKING:
    from hopscope.lab.export.trec import Labels
    from hopscope.runtime.types import Question, Run
    from hopscope.store.experiment_records import Experiment, Item
    from hopscope.store.store import Store
    from hopscope.tracing.erag import ERAG

app = typer.Typer(help="Write experiments in forms that other tools read.", no_args_is_help=True)

REASONS = 5
"""Failures that are told in full."""

Name = Annotated[
    str,
    typer.Argument(
        metavar="EXP", envvar="HOPSCOPE_EXPERIMENT", help="An experiment of `hopscope eval`."
    ),
]
Out = Annotated[
    Path, typer.Option("--out", envvar="HOPSCOPE_EXPORT_OUT", help="The folder to write to.")
]
OwnReader = Annotated[
    str | None,
    typer.Option(
        "--reader",
        metavar="READER",
        envvar="HOPSCOPE_READER",
        help="The model to ask; by default that of the experiment.",
    ),
]


class Form(StrEnum):
    csv = "csv"
    jsonl = "jsonl"
    parquet = "parquet"


class By(StrEnum):
    credit = "credit"
    erag = "erag"


class Of(StrEnum):
    run = "run"
    steps = "steps"


@app.callback()
def _group() -> None:
    """Write experiments in forms that other tools read."""


@app.command("settings")
def settings(experiment: Name, db: Database = None) -> None:
    """How an experiment was made, as JSON on stdout: settings, revisions of models, seed; and of
    each command that worked on it the versions and hardware."""
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        found = store.experiments.find(experiment)
        sittings = store.experiments.sittings(experiment)
    render.print_json(
        {
            "experiment": found.model_dump(mode="json"),
            "sittings": [sitting.model_dump(mode="json") for sitting in sittings],
        }
    )


@app.command("rows")
def rows(
    experiment: Name,
    out: Out,
    form: Annotated[
        Form,
        typer.Option(
            "--form", envvar="HOPSCOPE_EXPORT_FORM", help="Parquet wants the extra parquet."
        ),
    ] = Form.csv,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            envvar="HOPSCOPE_EXPORT_RAW",
            help="In CSV leave texts as they are; otherwise those that a spreadsheet would carry "
            "out as formulas get ' in front.",
        ),
    ] = False,
    overwrite: Overwrite = False,
    db: Database = None,
) -> None:
    """Runs, steps, decisions and credits as flat tables, in CSV, JSON lines or Parquet."""
    from hopscope.lab.export import rows as flat
    from hopscope.lab.export.sheets import sheet
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        found = store.experiments.find(experiment)
        paths = {name: out / f"{name}.{form.value}" for name in flat.SHEETS}
        check_free(paths.values(), overwrite=overwrite)
        with (
            sheet(paths["runs"], flat.RUNS, form.value, raw=raw) as write_run,
            sheet(paths["steps"], flat.STEPS, form.value, raw=raw) as write_step,
            sheet(paths["decisions"], flat.DECISIONS, form.value, raw=raw) as write_decision,
            sheet(paths["credits"], flat.CREDITS, form.value, raw=raw) as write_credit,
        ):
            for item, run in _done(store, found):
                write_run(flat.run_row(experiment, item, run))
                if run is not None:
                    _each(flat.step_rows(run), write_step)
                    _each(flat.decision_rows(run), write_decision)
                    _each(flat.credit_rows(store.credits(run.id)), write_credit)
    for path in paths.values():
        render.say(str(path))


def _each(found: Any, write: Callable[[dict[str, Any]], None]) -> None:
    for row in found:
        write(row)


@app.command("trec")
def trec(
    experiment: Name,
    out: Out,
    labels: Annotated[
        By,
        typer.Option(
            "--labels",
            envvar="HOPSCOPE_EXPORT_LABELS",
            help="What a passage is worth: the stored credit of it or of its step, or what the "
            "reader answers from it alone.",
        ),
    ] = By.credit,
    of: Annotated[
        Of,
        typer.Option(
            "--of",
            envvar="HOPSCOPE_EXPORT_OF",
            help="Rank all that a run showed, or what each step retrieved.",
        ),
    ] = Of.run,
    metric: metrics.MetricSpec = "exact_match",
    reader: OwnReader = None,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    seed: Seed = 0,
    overwrite: Overwrite = False,
    db: Database = None,
) -> None:
    """Rankings and labels for trec_eval: a .run file for each workflow, and one qrels file."""
    from hopscope.lab.export import trec as forms
    from hopscope.runtime.errors import HopscopeError, UsageError
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        found = store.experiments.find(experiment)
        paths = {arm.label: out / f"{_file_name(arm.label)}.run" for arm in found.arms}
        check_free([*paths.values(), out / "qrels"], overwrite=overwrite)
        erag, binary = None, False
        if labels is By.erag:
            spec = _reader(found, reader, thinking)
            erag, binary = _erag(metric, reader=spec, entailment=entailment, seed=seed)
        ranked: dict[str, list[forms.Ranked]] = {arm.label: [] for arm in found.arms}
        labelled: list[tuple[str, Labels]] = []
        failed: dict[str, str] = {}
        for item, run in _done(store, found):
            if run is None:
                continue
            whole, steps = forms.of_run(run), forms.of_steps(run)
            ranked[item.arm] += steps if of is Of.steps else [whole]
            try:
                known = (
                    forms.labels_of_credit(run, store.credits(run.id))
                    if erag is None
                    else _labels_of_erag(erag, run)
                )
            except HopscopeError as error:
                failed[run.id] = str(error)
                continue
            for ranking in steps if of is Of.steps else [whole]:
                own = {key: known[key] for key in ranking.passages if key in known}
                labelled.append((ranking.question, own))
    pooled = forms.highest(labelled)
    for label, rankings in ranked.items():
        path = paths[label]
        lines = forms.write_rankings(path, rankings, tag=f"{experiment}:{label}")
        render.say(f"{path}  {lines} lines")
    lines = forms.write_labels(out / "qrels", pooled, binary=binary)
    render.say(f"{out / 'qrels'}  {lines} labels")
    missing = sum(value is None for known in pooled.values() for value in known.values())
    if missing:
        render.note(f"{missing} passages have no label and are left out")
    if not lines:
        raise UsageError(
            f"nothing of {experiment} has a label: measure its runs, or give --labels erag"
        )
    _tell(failed, "runs have no labels")


@app.command("preferences")
def preferences(
    experiment: Name,
    out: Out,
    rewrites: Annotated[
        Path | None,
        typer.Option(
            "--rewrites",
            metavar="FILE",
            envvar="HOPSCOPE_EXPORT_REWRITES",
            help="Candidates: JSON lines of {id or question, rewrites}. Without it, what the "
            "experiment's runs searched for, and the question itself.",
        ),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(
            "--sample",
            min=0,
            envvar="HOPSCOPE_EXPORT_SAMPLE",
            help="Let the reader write so many more; the paper has 25.",
        ),
    ] = 0,
    depth: Annotated[
        int,
        typer.Option(
            "-k", min=1, envvar="HOPSCOPE_EXPORT_K", help="Passages a candidate is judged by."
        ),
    ] = 10,
    share: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            envvar="HOPSCOPE_EXPORT_SHARE",
            help="Of the preferences, how many to keep: those with the widest gaps.",
        ),
    ] = 0.5,
    meter: Annotated[
        str,
        typer.Option(
            "--meter",
            metavar="grogu|seper",
            envvar="HOPSCOPE_EXPORT_METER",
            help="What tells the worth of passages; seper needs gold answers.",
        ),
    ] = "grogu",
    corpus: Annotated[
        str | None,
        typer.Option(
            "--corpus",
            metavar="hopland|DIR|EXPRESSION",
            envvar="HOPSCOPE_CORPUS",
            help="What to search; by default what the experiment searched.",
        ),
    ] = None,
    reader: OwnReader = None,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    samples: Samples = 10,
    option: Options = None,
    seed: Seed = 0,
    db: Database = None,
) -> None:
    """Data to train a query rewriter with, as GroGU makes it: sft.jsonl and dpo.jsonl for TRL.

    What is appraised is kept in the folder: the same command goes on where it stopped.
    """
    from fractions import Fraction

    from hopscope.lab.export import preferences as forms
    from hopscope.lab.export import rewriting
    from hopscope.lab.export.candidates import Candidates
    from hopscope.lab.export.sheets import write_lines
    from hopscope.runtime.errors import HopscopeError, UsageError
    from hopscope.store.store import Store

    given = rewriting.from_file(rewrites) if rewrites else None
    with Store.open(db, create=False, reading=True) as store:
        found = store.experiments.find(experiment)
        asked: dict[Question, list[Run]] = {}
        for item, run in _done(store, found):
            asked.setdefault(item.question, []).extend([run] if run else [])
    if not asked:
        raise UsageError(f"nothing of {experiment} is done yet: go on with `hopscope eval`")
    spec = _reader(found, reader, thinking)
    searched = corpus or str(found.settings.get("corpus") or wiring.HOPLAND)
    model, judge = _meter(meter, spec, entailment, samples=samples, seed=seed, option=option)
    kept = Candidates(
        out,
        {
            "experiment": experiment,
            "rewrites": str(rewrites.absolute()) if rewrites else None,
            "sample": sample,
            "k": depth,
            "meter": meter,
            "samples": samples,
            "options": sorted(option or []),
            "corpus": searched,
            "reader": model.name,
            "entailment": entailment,
            "seed": seed,
        },
    )
    index = retrieval.retriever(searched, model, seed=seed)
    failed: dict[str, str] = {}
    for number, (question, runs) in enumerate(asked.items(), start=1):
        render.progress(f"question {number} of {len(asked)}")
        if question in kept.known:
            continue
        queries = rewriting.of_question(question, given) if given else rewriting.from_runs(runs)
        try:
            if sample:
                queries += rewriting.from_reader(model, [question], n=sample, seed=seed)[0]
            kept.add(forms.appraise(question, queries, index, judge, depth=depth))
        except HopscopeError as error:
            failed[question.id or question.text] = str(error)
    render.progress("")
    rewritten = [kept.known[question] for question in asked if question in kept.known]
    for name, made in (
        ("sft", forms.imitations(rewritten)),
        ("dpo", forms.preferences(rewritten, share=Fraction(str(share)))),
    ):
        write_lines(out / f"{name}.jsonl", made)
        render.say(f"{out / name}.jsonl  {len(made)} rows")
    _tell(failed, "questions failed: the same command tries them again")


def _tell(failed: dict[str, str], what: str) -> None:
    """Say what failed and end so; nothing if nothing did."""
    for which, why in list(failed.items())[:REASONS]:
        render.note(f"{render.plain(which)}: {why}")
    if failed:
        render.note(f"{len(failed)} {what}")
        raise typer.Exit(1)


def _done(store: "Store", found: "Experiment") -> "Iterator[tuple[Item, Run | None]]":
    """The items that are done, each with its run, one at a time."""
    for item in store.experiments.items(found.name):
        if item.status in ("ok", "failed"):
            yield item, store.load(item.outcome.run_id) if item.outcome else None


def _reader(found: "Experiment", named: str | None, thinking: str | None) -> str:
    own = str(found.settings.get("reader") or wiring.TINY)
    return wiring.reader_or_own(named, own, thinking)


def _erag(metric: str, *, reader: str, entailment: str, seed: int) -> "tuple[ERAG, bool]":
    from hopscope.tracing.caching import CachedReader
    from hopscope.tracing.erag import ERAG

    judged = metrics.metric(metric, reader=reader, entailment=entailment)
    return ERAG(CachedReader(wiring.reader(reader)), judged, seed=seed), judged.binary


def _labels_of_erag(erag: "ERAG", run: "Run") -> "Labels":
    ranking = erag.appraise(run)[-1]
    values = [label.value for label in ranking.labels]
    return dict(zip(ranking.passages, values, strict=True))


def _meter(
    name: str, reader: str, entailment: str, *, samples: int, seed: int, option: list[str] | None
) -> "tuple[Any, Any]":
    """The reader, and the meter that asks it."""
    from hopscope.cli.appraise import Appraiser, Measuring

    options = wiring.parse_pairs(option or [])
    measuring = Measuring(samples=samples, seed=seed, options=options, meters=[name], rules=[])
    measuring.parse()
    appraiser = Appraiser(wiring.reader(reader), wiring.entailment(entailment), measuring)
    return appraiser.reader, appraiser.meters[0]


def _file_name(label: str) -> str:
    return quote(label, safe="=,@+ ")
