"""`hopscope index`: build, search and inspect indexes."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api.views import render
from hopscope.cli.options import code_options
from hopscope.cli.options.help import CORPUS
from hopscope.cli.options.models import ThinkingSpec
from hopscope.runtime.texts.counting import counted

if TYPE_CHECKING:
    from hopscope.runtime.corpora.corpus import Corpus
    from hopscope.runtime.indexes.index_folder import Manifest
    from hopscope.runtime.indexes.phases import Phase, Progress
    from hopscope.runtime.types import Hit

app = typer.Typer(help="Build, search and inspect indexes.", no_args_is_help=True)

REPORT_EVERY = 1000
PROBLEMS_SHOWN = 10


class IndexKind(StrEnum):
    """The kind of an index."""

    bm25 = "bm25"
    lucene = "lucene"
    dense = "dense"
    opensearch = "opensearch"


class Device(StrEnum):
    """The device of a model."""

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
            metavar="CORPUS",
            envvar="HOPSCOPE_INDEX_CORPUS",
            help="A file or folder: JSON lines or list, CSV, TSV, Parquet, Markdown, text, PDF, a "
            "saved dataset; passages, or questions with passages (docs/retrieval.md).",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="FOLDER",
            envvar="HOPSCOPE_INDEX_OUT",
            help="The folder to create; for opensearch: http://HOST:PORT/INDEX.",
        ),
    ],
    kind: Annotated[
        IndexKind,
        typer.Option(
            metavar="KIND",
            envvar="HOPSCOPE_INDEX_KIND",
            help="bm25 (embedded), lucene (BM25 by pyserini), dense (vectors by faiss) or "
            "opensearch (BM25 by a service).",
        ),
    ] = IndexKind.bm25,
    encoder: Annotated[
        str,
        typer.Option(
            envvar="HOPSCOPE_INDEX_ENCODER",
            help="For dense: minilm, CONVENTION:MODEL such as e5:intfloat/e5-base-v2, or "
            "dpr:PASSAGE_MODEL,QUERY_MODEL (docs/retrieval.md).",
        ),
    ] = "",
    faiss: Annotated[
        str,
        typer.Option(
            envvar="HOPSCOPE_INDEX_FAISS",
            help="For dense: a faiss factory string such as HNSW32 or IVF256,PQ48; by default "
            "Flat.",
        ),
    ] = "",
    device: Annotated[
        Device, typer.Option(envvar="HOPSCOPE_DEVICE", help="For dense: the device of the encoder.")
    ] = Device.auto,
    shards: Annotated[
        int,
        typer.Option(
            envvar="HOPSCOPE_INDEX_SHARDS",
            min=0,
            show_default=False,
            help="For opensearch: the number of shards; by default 1.",
        ),
    ] = 0,
    name: Annotated[
        str,
        typer.Option(
            envvar="HOPSCOPE_INDEX_NAME",
            help="The name of the corpus; by default that of the file.",
            rich_help_panel=CORPUS,
        ),
    ] = "",
    format: Annotated[
        str,
        typer.Option(
            envvar="HOPSCOPE_INDEX_FORMAT",
            help="The file or record format, if names and fields do not show it; an unknown one "
            "lists all.",
            rich_help_panel=CORPUS,
        ),
    ] = "auto",
    text: Annotated[
        str,
        typer.Option(
            envvar="HOPSCOPE_INDEX_TEXT",
            help="The field or column of the text; a number in tables without a header line.",
            rich_help_panel=CORPUS,
        ),
    ] = "",
    title: Annotated[
        str,
        typer.Option(
            envvar="HOPSCOPE_INDEX_TITLE",
            help="With --text: the field or column of the title.",
            rich_help_panel=CORPUS,
        ),
    ] = "",
    id: Annotated[
        str,
        typer.Option(
            "--id",
            envvar="HOPSCOPE_INDEX_ID",
            help="With --text: the field or column of the id.",
            rich_help_panel=CORPUS,
        ),
    ] = "",
    chunk: Annotated[
        str,
        typer.Option(
            metavar="CHUNK",
            envvar="HOPSCOPE_INDEX_CHUNK",
            help="words:N,overlap:M divides longer texts into passages of N words that repeat M "
            "words of the passage before.",
            rich_help_panel=CORPUS,
        ),
    ] = "",
    skip_broken: Annotated[
        bool,
        typer.Option(
            "--skip-broken",
            envvar="HOPSCOPE_INDEX_SKIP_BROKEN",
            help="Leave out and report records with bad UTF-8, no text or a repeated id.",
            rich_help_panel=CORPUS,
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", envvar="HOPSCOPE_INDEX_OVERWRITE", help="Replace an existing index."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Build an index of a corpus.

    The folder appears when the index is complete. A stopped dense build resumes when it is
    repeated.
    """
    from hopscope.runtime.corpora.corpus import Corpus
    from hopscope.runtime.corpora.records.chunks import Chunking
    from hopscope.runtime.corpora.records.reading import Columns
    from hopscope.runtime.errors import UsageError

    if kind is IndexKind.dense and not encoder:
        raise UsageError("--kind dense needs an --encoder, such as minilm or e5:FOLDER")
    if kind is not IndexKind.dense and (encoder or faiss):
        raise UsageError(f"--encoder and --faiss are for --kind dense, not {kind}")
    if kind is not IndexKind.opensearch and (shards or "://" in out):
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
        if kind is IndexKind.opensearch:
            from hopscope.runtime.retrievers import opensearch

            return opensearch.create(
                source,
                out,
                name=called,
                shards=shards or 1,
                overwrite=overwrite,
                progress=progress,
            )
        if kind is IndexKind.dense:
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

        build = lucene.create if kind is IndexKind.lucene else bm25.create
        return build(source, Path(out), name=called, overwrite=overwrite, progress=progress)

    try:
        manifest = _create(source, create)
    finally:
        _tell_problems(source)
    if source.reading.replaced:
        render.say(
            f"{counted(source.reading.replaced, 'record holds', 'records hold')} half of a "
            "surrogate pair, such as \\ud83d alone; U+FFFD replaces it",
            stderr=True,
        )
    if source.repeats:
        render.say(f"{counted(source.repeats, 'passage')} left out as repetitions", stderr=True)
    if cut := manifest.counts.get("cut"):
        render.say(
            f"{cut:,} of {manifest.counts['passages']:,} passages are longer than the encoder "
            "reads and were cut; split them with --chunk",
            stderr=True,
        )
    _show(out, manifest, json)


@app.command("search")
def search(
    index: Annotated[
        str,
        typer.Argument(
            metavar="INDEX",
            envvar="HOPSCOPE_INDEX_FOLDER",
            callback=code_options.of_component,
            help="The folder of an index, KIND:WHERE such as lucene:NAME for a prebuilt one, or "
            "an expression such as rrf(DIR,DIR)@RR(encoder:minilm) (docs/workflows.md).",
        ),
    ],
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY", help="The queries; several are numbered from 1."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="HOPSCOPE_INDEX_QUERIES",
            help="A file of queries: lines of an id, a tab and a query, as in pyserini.",
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", envvar="HOPSCOPE_INDEX_K", min=1, help="Passages per query.")
    ] = 10,
    trec: Annotated[
        bool,
        typer.Option(
            "--trec",
            envvar="HOPSCOPE_INDEX_TREC",
            help="Print TREC lines: query, Q0, passage, rank, score, tag.",
        ),
    ] = False,
    qrels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="HOPSCOPE_INDEX_QRELS",
            help="Judgments in TREC's or BEIR's form: print MRR, R@c and NDCG@c in place of the "
            "rankings.",
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            envvar="HOPSCOPE_JSON",
            help="Print hits as JSON lines; with --qrels the table as JSON.",
        ),
    ] = False,
    reader: Annotated[
        str,
        code_options.component(
            metavar="READER",
            envvar="HOPSCOPE_READER",
            help="The reader of stages that name none.",
            rich_help_panel=None,
        ),
    ] = "tiny",
    thinking: ThinkingSpec = None,
) -> None:
    """Search one or several indexes for queries."""
    from hopscope.api import parts, retrieval
    from hopscope.cli.options.queries import read
    from hopscope.cli.views import searching

    asked = read(query or [], queries)
    if qrels is not None:
        _check_judged(asked, trec)
    retriever = retrieval.searcher(retrieval.parse(index), parts.thoughtful(reader, thinking))
    hits = retriever.search([text for _, text in asked], k=k)
    if qrels is not None:
        _show_quality(
            {id: found for (id, _), found in zip(asked, hits, strict=True)}, qrels, k, json
        )
        retrieval.tell_cut(retriever)
        return
    for (id, text), ranking in zip(asked, hits, strict=True):
        if trec or json:
            for line in (searching.trec if trec else searching.as_json)(id, text, ranking):
                render.say(line)
        else:
            for part in searching.table(id, text, ranking):
                render.out().print(part)
    retrieval.tell_cut(retriever)


def _check_judged(asked: Sequence[tuple[str, str]], trec: bool) -> None:
    from hopscope.runtime.errors import UsageError

    if trec:
        raise UsageError("--qrels prints measures and --trec rankings: give one of them")
    seen: set[str] = set()
    for id, _ in asked:
        if id in seen:
            raise UsageError(f"two queries have the id {id!r}: judgments need ids that differ")
        seen.add(id)


def _show_quality(found: "Mapping[str, Sequence[Hit]]", qrels: Path, k: int, json: bool) -> None:
    from hopscope.lab import rankings
    from hopscope.lab.dataset import qrels as judgments
    from hopscope.lab.table_forms import terminal
    from hopscope.tracing.statistics.over_questions import Bootstrap

    ranked = {id: [hit.passage.key for hit in hits] for id, hits in found.items()}
    made = rankings.evaluate(ranked, judgments.read(qrels), k=k, bootstrap=Bootstrap())
    terminal.show([made], "json" if json else None)


@app.command("info")
def info(
    index: Annotated[
        str,
        typer.Argument(
            metavar="INDEX",
            envvar="HOPSCOPE_INDEX_FOLDER",
            help="The folder of an index, or opensearch:http://HOST:PORT/INDEX.",
        ),
    ],
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            envvar="HOPSCOPE_INDEX_VERIFY",
            help="Compare every byte (of a service: every passage) with the manifest.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Print the contents and settings of an index."""
    from hopscope.runtime.errors import UsageError
    from hopscope.runtime.indexes import index_folder
    from hopscope.runtime.specs import Spec

    spec = Spec.parse(index, options=False)
    if spec.name == IndexKind.opensearch and spec.argument:
        url = spec.argument
        from hopscope.runtime.retrievers import opensearch

        manifest = opensearch.verify(url) if verify else opensearch.read_manifest(url)
        told = counted(manifest.counts["passages"], "passage matches", "passages match")
    else:
        folder = Path(index)
        if not folder.is_dir():
            raise UsageError(f"no index at {index}: make one with `hopscope index build`")
        manifest = index_folder.verify(folder) if verify else index_folder.read_manifest(folder)
        told = counted(len(manifest.files), "file matches", "files match")
    if verify:
        render.say(f"{told} the manifest", stderr=True)
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
                told = f"{doing} {counted(passages, 'passage')}"
                bar.update(task, completed=source.size, total=source.size, description=told)

        try:
            manifest = create(report)
        except BaseException:
            bar.live.transient = True  # no figures of an index that there is not
            raise
        bar.update(task, description=f"{counted(manifest.counts['passages'], 'passage')} indexed")
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
        rows["size"] = render.size(size)
    if manifest.kind == IndexKind.dense:
        rows["encoder"] = str(settings.get("encoder"))
        rows["tokenizer"] = str(settings.get("tokenizer"))
        rows["faiss"] = f"{settings.get('faiss')}, {settings.get('dimension')} dimensions"
    else:
        stops = settings.get("stop_words")
        listed = f", {len(stops)} stop words" if isinstance(stops, list) else ""
        rows["scoring"] = (
            f"{settings.get('variant')}, k1 {settings.get('k1')}, b {settings.get('b')}"
        )
        terms = f"{settings.get('tokenizer')}, {settings.get('stemmer')} stemmer{listed}"
        rows["tokenizer"] = terms
    rows["built by"] = f"hopscope {manifest.hopscope}"
    for label, value in rows.items():
        render.say(f"{label:<14}{value}")
