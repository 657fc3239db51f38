"""`hopscope export`: write experiments to files that other tools read."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from hopscope.api import parts, retrieval
from hopscope.api.views import render
from hopscope.cli.options import code_options, metrics
from hopscope.cli.options.help import MEASURING, MODELS, PLACES
from hopscope.cli.options.measuring import Samples, Seed
from hopscope.cli.options.models import EntailmentSpec, Options, ThinkingSpec
from hopscope.cli.options.places import Database
from hopscope.cli.options.written import Overwrite, check_free
from hopscope.lab.answer_metric import answer_metric
from hopscope.runtime.texts.counting import counted

app = typer.Typer(help="Write experiments to files that other tools read.", no_args_is_help=True)

REASONS = 5
"""The largest number of failures printed."""

Name = Annotated[
    str,
    typer.Argument(metavar="EXP", envvar="HOPSCOPE_EXPERIMENT", help="An experiment's name."),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FOLDER",
        envvar="HOPSCOPE_EXPORT_OUT",
        help="The folder to write to.",
        rich_help_panel=PLACES,
    ),
]
OwnReader = Annotated[
    str | None,
    code_options.component(
        "--reader",
        metavar="READER",
        envvar="HOPSCOPE_READER",
        help="The reader; by default that of the experiment.",
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
    """Write experiments to files that other tools read."""


@app.command("settings")
def settings(experiment: Name, db: Database = None) -> None:
    """Print an experiment's settings, model revisions and seed as JSON.

    Includes the versions and hardware of each command that worked on it.
    """
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        found = store.experiments.find(experiment)
        sessions = store.experiments.worker_sessions(experiment)
    render.print_json(
        {
            "experiment": found.model_dump(mode="json"),
            "sittings": [session.model_dump(mode="json") for session in sessions],
        }
    )


@app.command("rows")
def rows(
    experiment: Name,
    out: Out,
    form: Annotated[
        Form,
        typer.Option(
            "--form",
            envvar="HOPSCOPE_EXPORT_FORM",
            help="The file format; parquet needs the extra parquet.",
        ),
    ] = Form.csv,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            envvar="HOPSCOPE_EXPORT_RAW",
            help="In CSV, write texts unchanged; otherwise ' precedes texts that a spreadsheet "
            "would run as formulas.",
        ),
    ] = False,
    overwrite: Overwrite = False,
    db: Database = None,
) -> None:
    """Write runs, steps, decisions and credits as flat tables."""
    from hopscope.lab.export import flat_tables
    from hopscope.lab.export.rows import SHEETS
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        found = store.experiments.find(experiment)
        paths = {name: out / f"{name}.{form.value}" for name in SHEETS}
        check_free(paths.values(), overwrite=overwrite)
        flat_tables.write(store, found.name, paths, form.value, raw=raw)
    for path in paths.values():
        render.say(str(path))


@app.command("trec")
def trec(
    experiment: Name,
    out: Out,
    labels: Annotated[
        By,
        typer.Option(
            "--labels",
            envvar="HOPSCOPE_EXPORT_LABELS",
            help="The label of a passage: its stored credit or its step's, or the quality of the "
            "reader's answer from it alone (erag).",
            rich_help_panel=MEASURING,
        ),
    ] = By.credit,
    of: Annotated[
        Of,
        typer.Option(
            "--of",
            envvar="HOPSCOPE_EXPORT_OF",
            help="Rank all passages of a run, or those of each step.",
        ),
    ] = Of.run,
    metric: metrics.MetricSpec = "exact_match",
    reader: OwnReader = None,
    thinking: ThinkingSpec = None,
    file: code_options.Files = None,
    entailment: EntailmentSpec = "lexical",
    seed: Seed = 0,
    overwrite: Overwrite = False,
    db: Database = None,
) -> None:
    """Write rankings and labels for trec_eval: a .run file per workflow and one qrels file."""
    from hopscope.lab.export import trec as forms
    from hopscope.lab.export.sources import reader_of
    from hopscope.runtime.errors import UsageError
    from hopscope.store.store import Store
    from hopscope.tracing.erag.labels import ERAG
    from hopscope.tracing.wrappers.cached import CachedReader

    with Store.open(db, create=False, reading=True) as store:
        found = store.experiments.find(experiment)
        paths = {arm.label: out / f"{_file_name(arm.label)}.run" for arm in found.arms}
        check_free([*paths.values(), out / "qrels"], overwrite=overwrite)
        judge = None
        if labels is By.erag:
            asked = reader_of(found, reader, thinking)
            judged = answer_metric(metric, reader=asked, entailment=entailment)
            prompts = parts.prompts_of(asked) or ""
            judge = ERAG(CachedReader(parts.reader(asked)), judged, seed=seed, prompts=prompts)
        collected = forms.collect(store, found, by_step=of is Of.steps, erag=judge)
    pooled = collected.labels
    binary = judge is not None and judge.metric.binary
    for label, rankings in collected.rankings.items():
        path = paths[label]
        lines = forms.write_rankings(path, rankings, tag=f"{experiment}:{label}")
        render.say(f"{path}  {counted(lines, 'line')}")
    lines = forms.write_labels(out / "qrels", pooled, binary=binary)
    render.say(f"{out / 'qrels'}  {counted(lines, 'label')}")
    missing = sum(value is None for known in pooled.values() for value in known.values())
    if missing:
        render.note(f"{counted(missing, 'passage has', 'passages have')} no label: left out")
    if not lines:
        raise UsageError(
            f"nothing of {experiment} has a label: measure its runs, or give --labels erag"
        )
    _tell(collected.failed, "run without labels", "runs without labels")


@app.command("inspect")
def inspect(experiment: Name, out: Out, overwrite: Overwrite = False, db: Database = None) -> None:
    """Write logs for `inspect view`: one .eval file per workflow, with scores and credits.

    Needs the extra inspect.
    """
    from hopscope.lab.export import inspect_logs
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        found = store.experiments.find(experiment)
        paths = inspect_logs.paths(found, out)
        check_free(paths.values(), overwrite=overwrite)
        metrics = [
            answer_metric(name, reader=parts.TINY, entailment="lexical")
            for name in inspect_logs.METRICS
        ]
        inspect_logs.write(store, found, paths, metrics)
    for path in paths.values():
        render.say(str(path))


@app.command("flashrag")
def flashrag(experiment: Name, out: Out, overwrite: Overwrite = False, db: Database = None) -> None:
    """Write FlashRAG's intermediate_data.json: a folder per workflow."""
    from hopscope.lab.export import flashrag as form
    from hopscope.lab.export.sources import answered
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        found = store.experiments.find(experiment)
        paths = {
            arm.label: out / _file_name(arm.label) / "intermediate_data.json" for arm in found.arms
        }
        check_free(paths.values(), overwrite=overwrite)
        for label, path in paths.items():
            pairs, unanswered = answered(store, experiment, label)
            form.write(path, [form.record(item, run) for item, run in pairs])
            _say_written(path, len(pairs), unanswered)


@app.command("ragas")
def ragas(experiment: Name, out: Out, overwrite: Overwrite = False, db: Database = None) -> None:
    """Write ragas' evaluation set: a .jsonl file per workflow."""
    from hopscope.lab.export import ragas as form
    from hopscope.lab.export.sheets import write_lines
    from hopscope.lab.export.sources import answered
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        found = store.experiments.find(experiment)
        paths = {arm.label: out / f"{_file_name(arm.label)}.jsonl" for arm in found.arms}
        check_free(paths.values(), overwrite=overwrite)
        for label, path in paths.items():
            pairs, unanswered = answered(store, experiment, label)
            write_lines(path, [form.sample(run) for _, run in pairs])
            _say_written(path, len(pairs), unanswered)


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
            help="Candidates: JSON lines of {id or question, rewrites, history}. By default the "
            "runs' queries and the question itself.",
        ),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(
            "--sample",
            min=0,
            envvar="HOPSCOPE_EXPORT_SAMPLE",
            help="Rewrites that the reader adds; 25 in the paper.",
        ),
    ] = 0,
    depth: Annotated[
        int,
        typer.Option(
            "-k",
            min=1,
            envvar="HOPSCOPE_EXPORT_K",
            help="Passages per candidate.",
            rich_help_panel=MODELS,
        ),
    ] = 10,
    share: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            envvar="HOPSCOPE_EXPORT_SHARE",
            help="The share of preferences to keep, widest gaps first.",
        ),
    ] = 0.5,
    meter: Annotated[
        str,
        code_options.component(
            "--meter",
            metavar="METER",
            envvar="HOPSCOPE_EXPORT_METER",
            help="The meter of passages; `hopscope list meters` shows which need gold answers.",
            rich_help_panel=MEASURING,
        ),
    ] = "grogu",
    corpus: Annotated[
        str | None,
        code_options.component(
            "--corpus",
            metavar="CORPUS",
            envvar="HOPSCOPE_CORPUS",
            help="The corpus to search; by default the experiment's.",
        ),
    ] = None,
    reader: OwnReader = None,
    thinking: ThinkingSpec = None,
    file: code_options.Files = None,
    entailment: EntailmentSpec = "lexical",
    samples: Samples = 10,
    option: Options = None,
    seed: Seed = 0,
    db: Database = None,
) -> None:
    """Write training data for a query rewriter, as in GroGU: sft.jsonl and dpo.jsonl for TRL.

    Rated candidates are kept in the folder: the same command resumes.
    """
    from fractions import Fraction

    from hopscope.lab.export import preferences as forms
    from hopscope.lab.export import rewriting, sources
    from hopscope.lab.export.candidates import Candidates, appraise_missing
    from hopscope.lab.export.sheets import write_lines
    from hopscope.runtime import specs
    from hopscope.runtime.errors import UsageError
    from hopscope.store.store import Store

    given = rewriting.from_file(rewrites) if rewrites else {}
    with Store.open(db, create=False, reading=True) as store:
        found = store.experiments.find(experiment)
        asked = sources.runs_by_question(store, found.name)
    if not asked:
        raise UsageError(f"nothing of {experiment} is done yet: continue with `hopscope eval`")
    searched = corpus or str(found.settings.get("corpus") or parts.HOPLAND)
    model, judge = sources.meter(
        meter,
        reader=sources.reader_of(found, reader, thinking),
        entailment=entailment,
        samples=samples,
        seed=seed,
        options=specs.pairs(option or []),
    )
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
    failed = appraise_missing(
        kept,
        asked,
        given,
        index=retrieval.retriever(retrieval.parse(searched), model, seed=seed),
        reader=model,
        meter=judge,
        sample=sample,
        depth=depth,
        seed=seed,
    )
    rewritten = [kept.known[question] for question in asked if question in kept.known]
    for name, made in (
        ("sft", forms.imitations(rewritten)),
        ("dpo", forms.preferences(rewritten, share=Fraction(str(share)))),
    ):
        write_lines(out / f"{name}.jsonl", made)
        render.say(f"{out / name}.jsonl  {counted(len(made), 'row')}")
    _tell(
        failed,
        "question failed: the same command tries it again",
        "questions failed: the same command tries them again",
    )


def _tell(failed: dict[str, str], one: str, several: str) -> None:
    """Say what failed and end so; nothing if nothing did."""
    for which, why in list(failed.items())[:REASONS]:
        render.note(f"{render.plain(which)}: {why}")
    if failed:
        render.note(counted(len(failed), one, several))
        raise typer.Exit(1)


def _say_written(path: Path, questions: int, unanswered: int) -> None:
    render.say(f"{path}  {counted(questions, 'question')}")
    if unanswered:
        render.note(f"{path.name}: left out: {counted(unanswered, 'question')} without an answer")


def _file_name(label: str) -> str:
    return quote(label, safe="=,@+ ")
