"""`hopscope index`: make a searchable index of a corpus, and say what is in one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hopscope.runtime.corpus import Corpus
    from hopscope.runtime.index_folder import Manifest
    from hopscope.runtime.retrievers._phases import Phase

app = typer.Typer(help="Build and look at search indexes.", no_args_is_help=True)

REPORT_EVERY = 1000

Json = Annotated[
    bool, typer.Option("--json", envvar="HOPSCOPE_JSON", help="Print the manifest as JSON.")
]


@app.command("build")
def build(
    corpus: Annotated[
        Path,
        typer.Argument(
            envvar="HOPSCOPE_INDEX_CORPUS",
            help="JSON lines of {id, title, text} or a JSON list of {title, text}; may be .gz.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", envvar="HOPSCOPE_INDEX_OUT", help="Folder to make.")
    ],
    name: Annotated[
        str,
        typer.Option(
            envvar="HOPSCOPE_INDEX_NAME", help="What to call the corpus; else the file's name."
        ),
    ] = "",
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", envvar="HOPSCOPE_INDEX_OVERWRITE", help="Replace an index there."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Index a corpus for BM25 search.

    Nothing appears in the folder before the index is complete.
    """
    from hopscope.runtime.corpus import Corpus

    source = Corpus(corpus)
    manifest = _create(source, out, name=name or source.name, overwrite=overwrite)
    if source.repeats:
        typer.echo(f"{source.repeats} passages left out: they had come before", err=True)
    _show(out, manifest, json)


@app.command("info")
def info(
    index: Annotated[
        Path, typer.Argument(envvar="HOPSCOPE_INDEX_FOLDER", help="Folder of an index.")
    ],
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", envvar="HOPSCOPE_INDEX_VERIFY", help="Compare every byte with the manifest."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Print what an index holds and how it was made."""
    from hopscope.runtime import index_folder
    from hopscope.runtime.errors import UsageError

    if not index.is_dir():
        raise UsageError(f"no index at {index}: make one with `hopscope index build`")
    manifest = index_folder.verify(index) if verify else index_folder.read_manifest(index)
    if verify:
        typer.echo(f"{len(manifest.files)} files are as the manifest says", err=True)
    _show(index, manifest, json)


def _create(source: "Corpus", out: Path, *, name: str, overwrite: bool) -> "Manifest":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from hopscope.runtime.retrievers import bm25

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("Reading", total=source.size)

        def report(phase: "Phase", passages: int) -> None:
            if phase == "read":
                if passages % REPORT_EVERY == 0:
                    bar.update(task, completed=source.bytes_read, description=f"{passages:,} read")
                return
            doing = {"score": "Scoring", "write": "Writing"}[phase]
            bar.update(task, completed=source.size, description=f"{doing} {passages:,} passages")

        manifest = bm25.create(source, out, name=name, overwrite=overwrite, progress=report)
        bar.update(task, description=f"{manifest.counts['passages']:,} passages indexed")
    return manifest


def _show(folder: Path, manifest: "Manifest", json: bool) -> None:
    if json:
        typer.echo(manifest.model_dump_json(indent=2))
        return
    counts, settings = manifest.counts, manifest.settings
    size = sum(file.size for file in manifest.files.values())
    stops = settings.get("stop_words")
    rows = {
        "index": str(folder),
        "corpus": manifest.name,
        "kind": manifest.kind,
        "fingerprint": manifest.fingerprint[:12],
        "passages": f"{counts['passages']:,}",
        "without terms": f"{counts['empty']:,}",
        "tokens": f"{counts['tokens']:,}",
        "terms": f"{counts['terms']:,}",
        "size": f"{size / 1e6:,.1f} MB",
        "scoring": f"{settings.get('variant')}, k1 {settings.get('k1')}, b {settings.get('b')}",
        "terms by": f"{settings.get('tokenizer')}, {settings.get('stemmer')} stemmer, "
        f"{len(stops) if isinstance(stops, list) else 0} stop words",
        "built by": f"hopscope {manifest.hopscope}",
    }
    for label, value in rows.items():
        typer.echo(f"{label:<14}{value}")
