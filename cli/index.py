"""`hopscope index`: make a searchable index of a corpus, and say what is in one."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.cli import render
from hopscope.cli.run import ThinkingSpec

if TYPE_CHECKING:
    from hopscope.runtime.corpus import Corpus
    from hopscope.runtime.index_folder import Manifest
    from hopscope.runtime.retrievers._phases import Phase, Progress

app = typer.Typer(help="Build and look at search indexes.", no_args_is_help=True)

REPORT_EVERY = 1000
PROBLEMS_SHOWN = 10


class Kind(StrEnum):
    """What searches the index."""

    bm25 = "bm25"
    lucene = "lucene"
    dense = "dense"
    opensearch = "opensearch"


class Device(StrEnum):
    """Where a model computes."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"
    mps = "mps"


Json = Annotated[
    bool, typer.Option("--json", envvar="HOPSCOPE_JSON", help="Print the manifest as JSON.")
]


@app.command("build")
def build(
    corpus: Annotated[
        Path,
        typer.Argument(
            envvar="HOPSCOPE_INDEX_CORPUS",
            help="File or folder: JSON lines or list, CSV, TSV, Parquet, Markdown, text, PDF, a "
            "saved dataset; passages, or questions with passages. See docs/retrieval.md.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            envvar="HOPSCOPE_INDEX_OUT",
            help="Folder to make; for opensearch: http://HOST:PORT/INDEX.",
        ),
    ],
    kind: Annotated[
        Kind,
        typer.Option(
            envvar="HOPSCOPE_INDEX_KIND",
            help="bm25, embedded; lucene, BM25 by pyserini; dense, vectors by faiss; opensearch, "
            "BM25 by a service.",
        ),
    ] = Kind.bm25,
    encoder: Annotated[
        str,
        typer.Option(
            envvar="HOPSCOPE_INDEX_ENCODER",
            help="For dense: minilm, or CONVENTION:MODEL such as e5:intfloat/e5-base-v2, or "
            "dpr:PASSAGE_MODEL,QUERY_MODEL. See docs/retrieval.md.",
        ),
    ] = "",
    faiss: Annotated[
        str,
        typer.Option(
            envvar="HOPSCOPE_INDEX_FAISS",
            help="For dense: faiss factory string, such as Flat, HNSW32 or IVF256,PQ48; else Flat.",
        ),
    ] = "",
    device: Annotated[
        Device, typer.Option(envvar="HOPSCOPE_DEVICE", help="For dense: where the model computes.")
    ] = Device.auto,
    shards: Annotated[
        int,
        typer.Option(
            envvar="HOPSCOPE_INDEX_SHARDS",
            min=0,
            show_default=False,
            help="For opensearch: parts of the index, which the service spreads over its "
            "machines; else 1.",
        ),
    ] = 0,
    name: Annotated[
        str,
        typer.Option(
            envvar="HOPSCOPE_INDEX_NAME", help="What to call the corpus; else the file's name."
        ),
    ] = "",
    format: Annotated[
        str,
        typer.Option(
            envvar="HOPSCOPE_INDEX_FORMAT",
            help="Kind of file or layout of records, where names and fields do not tell; an "
            "unknown one lists all.",
        ),
    ] = "auto",
    text: Annotated[
        str,
        typer.Option(
            envvar="HOPSCOPE_INDEX_TEXT",
            help="Field or column that holds the text; numbers are columns of a table without a "
            "header line.",
        ),
    ] = "",
    title: Annotated[
        str,
        typer.Option(envvar="HOPSCOPE_INDEX_TITLE", help="With --text: that of the title."),
    ] = "",
    id: Annotated[
        str,
        typer.Option("--id", envvar="HOPSCOPE_INDEX_ID", help="With --text: that of the id."),
    ] = "",
    chunk: Annotated[
        str,
        typer.Option(
            metavar="words:N,overlap:M",
            envvar="HOPSCOPE_INDEX_CHUNK",
            help="Divide longer texts into passages of N words, M of them from the one before.",
        ),
    ] = "",
    skip_broken: Annotated[
        bool,
        typer.Option(
            "--skip-broken",
            envvar="HOPSCOPE_INDEX_SKIP_BROKEN",
            help="Leave out records that are not UTF-8, have no text, or an id given before, and "
            "tell their lines.",
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", envvar="HOPSCOPE_INDEX_OVERWRITE", help="Replace an index there."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Index a corpus for search, by BM25 or by vectors.

    Nothing appears in the folder before the index is complete. A dense build that was stopped goes
    on where it was when it is repeated.
    """
    from hopscope.runtime.corpora.chunks import Chunking
    from hopscope.runtime.corpora.reading import Columns
    from hopscope.runtime.corpus import Corpus
    from hopscope.runtime.errors import UsageError

    if kind is Kind.dense and not encoder:
        raise UsageError("--kind dense needs an --encoder, such as minilm or e5:FOLDER")
    if kind is not Kind.dense and (encoder or faiss):
        raise UsageError(f"--encoder and --faiss are for --kind dense, not {kind}")
    if kind is not Kind.opensearch and (shards or "://" in out):
        raise UsageError(f"--shards and addresses are for --kind opensearch, not {kind}")
    source = Corpus(
        corpus,
        format=format,
        columns=Columns(text=text, title=title, id=id),
        chunking=Chunking.parse(chunk) if chunk else None,
        skip=skip_broken,
    )
    called = name or source.name

    def create(progress: "Progress") -> "Manifest":
        if kind is Kind.opensearch:
            from hopscope.runtime.retrievers import opensearch

            return opensearch.create(
                source,
                out,
                name=called,
                shards=shards or 1,
                overwrite=overwrite,
                progress=progress,
            )
        if kind is Kind.dense:
            from hopscope.runtime.retrievers import dense

            return dense.create(
                source,
                Path(out),
                name=called,
                encoder=encoder,
                faiss=faiss or dense.FLAT,
                device=device.value,
                overwrite=overwrite,
                progress=progress,
            )
        from hopscope.runtime.retrievers import bm25, lucene

        build = lucene.create if kind is Kind.lucene else bm25.create
        return build(source, Path(out), name=called, overwrite=overwrite, progress=progress)

    try:
        manifest = _create(source, create)
    finally:
        _tell_problems(source)
    if source.reading.replaced:
        render.say(
            f"{source.reading.replaced:,} records hold half of a surrogate pair, such as \\ud83d "
            "alone, which is no character: U+FFFD stands in its place",
            stderr=True,
        )
    if source.repeats:
        render.say(f"{source.repeats:,} passages left out: they had come before", stderr=True)
    if cut := manifest.counts.get("cut"):
        render.say(
            f"{cut:,} of {manifest.counts['passages']:,} passages are longer than the encoder "
            "reads; their ends were left out",
            stderr=True,
        )
    _show(out, manifest, json)


@app.command("search")
def search(
    index: Annotated[
        str,
        typer.Argument(
            envvar="HOPSCOPE_INDEX_FOLDER",
            help="Folder of an index, KIND:WHERE such as lucene:NAME for a prebuilt one, or an "
            "expression such as rrf(DIR,DIR)@RR(encoder:minilm): see docs/workflows.md.",
        ),
    ],
    query: Annotated[
        list[str] | None, typer.Argument(help="What to search for; several are numbered from 1.")
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            envvar="HOPSCOPE_INDEX_QUERIES", help="Lines of ID, a tab and a query, as pyserini's."
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", envvar="HOPSCOPE_INDEX_K", min=1, help="Passages for each query.")
    ] = 10,
    trec: Annotated[
        bool,
        typer.Option(
            "--trec",
            envvar="HOPSCOPE_INDEX_TREC",
            help="Print a TREC run: query, Q0, passage, rank, score, tag.",
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", envvar="HOPSCOPE_JSON", help="Print hits as JSON lines.")
    ] = False,
    reader: Annotated[
        str,
        typer.Option(
            metavar="READER",
            envvar="HOPSCOPE_READER",
            help="Whom the stages of an expression ask that name no reader.",
        ),
    ] = "tiny",
    thinking: ThinkingSpec = None,
) -> None:
    """Search an index, or several as an expression says, for one query or a file of them."""
    from hopscope.cli import retrieval, searching, wiring

    asked = searching.read(query or [], queries)
    retriever = retrieval.searcher(index, wiring.thoughtful(reader, thinking))
    hits = retriever.search([text for _, text in asked], k=k)
    for (id, text), ranking in zip(asked, hits, strict=True):
        if trec or json:
            for line in (searching.trec if trec else searching.as_json)(id, text, ranking):
                render.say(line)
        else:
            for part in searching.table(id, text, ranking):
                render.out().print(part)
    retrieval.tell_cut(retriever)


@app.command("info")
def info(
    index: Annotated[
        str,
        typer.Argument(
            envvar="HOPSCOPE_INDEX_FOLDER",
            help="Folder of an index, or opensearch:http://HOST:PORT/INDEX.",
        ),
    ],
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            envvar="HOPSCOPE_INDEX_VERIFY",
            help="Compare every byte, or on a service every passage, with the manifest.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Print what an index holds and how it was made."""
    from hopscope.runtime import index_folder
    from hopscope.runtime.errors import UsageError

    kind, _, url = index.partition(":")
    if kind == Kind.opensearch and url:
        from hopscope.runtime.retrievers import opensearch

        manifest = opensearch.verify(url) if verify else opensearch.read_manifest(url)
        told = f"{manifest.counts['passages']:,} passages"
    else:
        folder = Path(index)
        if not folder.is_dir():
            raise UsageError(f"no index at {index}: make one with `hopscope index build`")
        manifest = index_folder.verify(folder) if verify else index_folder.read_manifest(folder)
        told = f"{len(manifest.files)} files"
    if verify:
        render.say(f"{told} are as the manifest says", stderr=True)
    _show(index, manifest, json)


def _create(source: "Corpus", create: "Callable[[Progress], Manifest]") -> "Manifest":
    """Build with a progress bar on stderr."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
    with Progress(*columns, TimeElapsedColumn(), console=render.err()) as bar:
        task = bar.add_task("Reading", total=source.size)
        read = 0

        def report(phase: "Phase", passages: int) -> None:
            nonlocal read
            if phase == "read":
                read = passages
                if passages % REPORT_EVERY == 0:
                    bar.update(
                        task, completed=source.reading.bytes_read, description=f"{passages:,} read"
                    )
            elif phase == "encode":
                told = f"{passages:,} of {read:,} encoded"
                bar.update(task, completed=passages, total=read, description=told)
            else:
                doing = {"score": "Scoring", "write": "Writing"}[phase]
                told = f"{doing} {passages:,} passages"
                bar.update(task, completed=source.size, total=source.size, description=told)

        manifest = create(report)
        bar.update(task, description=f"{manifest.counts['passages']:,} passages indexed")
    return manifest


def _tell_problems(source: "Corpus") -> None:
    reading = source.reading
    if not reading.skipped:
        return
    for problem in reading.problems[:PROBLEMS_SHOWN]:
        render.say(f"left out: {render.plain(str(problem))}", stderr=True)
    more = reading.skipped - PROBLEMS_SHOWN
    told = f", {more:,} of them not shown" if more > 0 else ""
    render.say(f"{reading.skipped:,} broken records left out{told}", stderr=True)


def _show(place: str, manifest: "Manifest", json: bool) -> None:
    if json:
        render.print_json(manifest.model_dump(mode="json"))
        return
    counts, settings = manifest.counts, manifest.settings
    size = sum(file.size for file in manifest.files.values())
    rows = {
        "index": place,
        "corpus": manifest.name,
        "kind": manifest.kind,
        "fingerprint": manifest.fingerprint[:12],
        "passages": f"{counts['passages']:,}",
    }
    labels = {"empty": "without terms", "tokens": "tokens", "terms": "terms", "cut": "cut"}
    labels |= {"shards": "shards"}
    rows |= {label: f"{counts[key]:,}" for key, label in labels.items() if key in counts}
    if manifest.files:
        rows["size"] = f"{size / 1e6:,.1f} MB"
    if manifest.kind == Kind.dense:
        rows["encoder"] = str(settings.get("encoder"))
        rows["tokenizer"] = str(settings.get("tokenizer"))
        rows["faiss"] = f"{settings.get('faiss')}, {settings.get('dimension')} dimensions"
    else:
        stops = settings.get("stop_words")
        listed = f", {len(stops)} stop words" if isinstance(stops, list) else ""
        rows["scoring"] = (
            f"{settings.get('variant')}, k1 {settings.get('k1')}, b {settings.get('b')}"
        )
        rows["terms by"] = f"{settings.get('tokenizer')}, {settings.get('stemmer')} stemmer{listed}"
    rows["built by"] = f"hopscope {manifest.hopscope}"
    for label, value in rows.items():
        render.say(f"{label:<14}{value}")
