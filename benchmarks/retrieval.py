"""The cost of large indexes, to build and to search, beside the libraries called directly.

    python benchmarks/retrieval.py [--passages N] [--only PART ...] [--folder FOLDER] [--json]

Parts: `bm25` (bm25s), `lucene` (Anserini; `pip install 'hopscope[lucene]'`), `hnsw` (faiss, as many
seeded vectors of 384 coordinates as passages) and `encode` (MiniLM, 20,000 passages at most; extra
`minilm`). Passages are generated while they are indexed (`benchmarks/generated.py`), not kept in
memory. Each build and each search runs in a process of its own, with its peak memory; mapped files
count as far as they were read.

The library alone does the same task as in its documentation: bm25s uses its own tokenizer and
Porter's stemmer and returns the texts of its own corpus file; Anserini returns ids, scores and
stored texts; faiss returns positions and scores, with the texts from JSON lines in a mapped file,
or, as `positions`, without them. Latency is of one query at a time. A batch has all queries at
once, first for the one, then for the other, nine times: overhead is the median over these pairs of
Hopscope's time divided by the library's, minus 1, with a 95 % percentile bootstrap over the pairs
(seed 0). It must be 5 % at most. Processor time is printed, too, because it varies less on a busy
machine. Encoding 128 passages is compared five times, as MiniLM takes a second for some twenty.
"""

import argparse
import gc
import json
import mmap
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import generated
import numpy as np
from numpy.typing import NDArray

PARTS = ("bm25", "lucene", "hnsw", "encode")
PASSAGES, ENCODED, COMPARED = 1_000_000, 20_000, 128
QUERIES, ALONE = 1000, 300
K = 10
FACTORY, EF_SEARCH = "HNSW32", 64
ROUNDS, ENCODE_ROUNDS, MOST_OVERHEAD, RESAMPLES = 9, 5, 0.05, 10_000
ENDS = (2.5, 97.5)
MODEL_BATCH = 32
WHO = ("hopscope", "bare", "positions")
Row = dict[str, Any]


Search = Callable[[Sequence[int]], Any]
"""Answers queries by their numbers."""


# --- bm25s ----------------------------------------------------------------------------------------


def build_bm25(folder: Path, count: int) -> None:
    from hopscope.runtime.retrievers import bm25

    bm25.create(generated.passages(count), folder, name="generated")


def build_bm25_bare(folder: Path, count: int) -> None:
    import bm25s
    import Stemmer

    corpus = [p.model_dump(include={"id", "title", "text"}) for p in generated.passages(count)]
    texts = [f"{record['title']} {record['text']}" for record in corpus]
    tokens = bm25s.tokenize(texts, stemmer=Stemmer.Stemmer("porter"), show_progress=False)
    index = bm25s.BM25(k1=0.9, b=0.4, method="lucene", backend="numpy")
    index.index(tokens, show_progress=False)
    index.save(folder, corpus=corpus, show_progress=False)


def search_bm25(ours: Path, bare: Path) -> Iterator[Any]:
    from hopscope.runtime.retrievers import bm25

    queries = generated.queries(QUERIES)
    retriever = bm25.build(index=ours)
    yield lambda numbers: retriever.search([queries[n] for n in numbers], k=K)
    import bm25s
    import Stemmer

    index, stemmer = bm25s.BM25.load(bare, mmap=True, load_corpus=True), Stemmer.Stemmer("porter")

    def search(numbers: Sequence[int]) -> Any:
        asked = [queries[n] for n in numbers]
        tokens = bm25s.tokenize(asked, stemmer=stemmer, show_progress=False)
        return index.retrieve(tokens, k=K, show_progress=False, backend_selection="numpy")

    yield search


# --- Lucene ---------------------------------------------------------------------------------------


def build_lucene(folder: Path, count: int) -> None:
    from hopscope.runtime.retrievers import lucene

    lucene.create(generated.passages(count), folder, name="generated")


def build_lucene_bare(folder: Path, count: int) -> None:
    """Build from JSON lines, which are written first: the form of Anserini's command."""
    from hopscope.runtime.retrievers.lucene import jvm

    source = folder.with_name("lucene-source")
    source.mkdir()
    with (source / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for passage in generated.passages(count):
            record = {"id": passage.id, "contents": f"{passage.title}\n{passage.text}"}
            file.write(json.dumps(record) + "\n")
    arguments = ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator"]
    arguments += ["-storeRaw", "-quiet", "-threads", "1"]
    arguments += ["-input", str(source), "-index", str(folder)]
    jvm.classes()("io.anserini.index.IndexCollection").main(arguments)
    shutil.rmtree(source)


def search_lucene(ours: Path, bare: Path) -> Iterator[Any]:
    from hopscope.runtime.retrievers import lucene
    from hopscope.runtime.retrievers.lucene import jvm

    queries = generated.queries(QUERIES)
    retriever = lucene.build(index=ours)
    yield lambda numbers: retriever.search([queries[n] for n in numbers], k=K)
    classes = jvm.classes()
    searcher = classes("io.anserini.search.SimpleSearcher")(str(bare))
    searcher.set_bm25(0.9, 0.4)

    def hit(found: Any) -> tuple[str, float, str]:
        return found.docid, found.score, found.lucene_document.get("raw")

    def search(numbers: Sequence[int]) -> Any:
        if len(numbers) == 1:
            return [[hit(one) for one in searcher.search(queries[numbers[0]], K)]]
        texts, names = (classes("java.util.ArrayList")() for _ in range(2))
        for number in numbers:
            texts.add(queries[number])
            names.add(str(number))
        found = searcher.batch_search(texts, names, K, os.cpu_count())
        return [[hit(one) for one in found.get(str(number))] for number in numbers]

    yield search


# --- faiss ----------------------------------------------------------------------------------------


def build_hnsw(folder: Path, count: int) -> None:
    """Build as `index build --kind dense` does, but from a file of vectors, without an encoder."""
    from hopscope.runtime.indexes import passage_file
    from hopscope.runtime.retrievers.dense import faiss_index as _faiss

    folder.mkdir()
    for _ in passage_file.write(generated.passages(count), folder):
        pass
    path, shape = folder / "vectors.f32", (count, generated.DIMENSION)
    matrix = np.memmap(path, dtype=np.float32, mode="w+", shape=shape)
    done = 0
    for block in generated.vectors(count):
        matrix[done : done + len(block)] = block
        done += len(block)
    matrix.flush()
    index = _faiss.make(FACTORY, generated.DIMENSION)
    _faiss.write(_faiss.fill(index, FACTORY, matrix, lambda done: None), folder / "dense.faiss")
    del matrix
    path.unlink()


def build_hnsw_bare(folder: Path, count: int) -> None:
    import faiss

    index = faiss.index_factory(generated.DIMENSION, FACTORY, faiss.METRIC_INNER_PRODUCT)
    for block in generated.vectors(count):
        index.add(block)
    folder.mkdir()
    faiss.write_index(index, str(folder / "dense.faiss"))


class Given:
    """Replaces an encoder: a query is the number of its vector."""

    name = "given"

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._vectors = vectors

    def queries(self, texts: Sequence[str]) -> Any:
        class Encoded(NamedTuple):
            vectors: NDArray[np.float32]
            cut: int

        return Encoded(self._vectors[[int(text) for text in texts]], 0)


def search_hnsw(ours: Path, bare: Path) -> Iterator[Any]:
    from hopscope.runtime.indexes import passage_file
    from hopscope.runtime.retrievers import dense
    from hopscope.runtime.retrievers.dense import faiss_index as _faiss

    vectors = generated.query_vectors(QUERIES)
    mapped = _faiss.read(ours / "dense.faiss", FACTORY)
    _faiss.search_settings(mapped, f"efSearch={EF_SEARCH}")
    passages = passage_file.PassageFile(ours, source="generated")
    encoder: Any = Given(vectors)
    retriever = dense.Dense("generated", passages, mapped, encoder)
    yield lambda numbers: retriever.search([str(n) for n in numbers], k=K)
    import faiss

    index = faiss.read_index(str(bare / "dense.faiss"))
    faiss.ParameterSpace().set_index_parameter(index, "efSearch", EF_SEARCH)
    texts, ends = (ours / passage_file.TEXTS).open("rb"), np.load(ours / passage_file.OFFSETS)
    lines = mmap.mmap(texts.fileno(), 0, access=mmap.ACCESS_READ)

    def search(numbers: Sequence[int]) -> Any:
        scores, places = index.search(vectors[list(numbers)], K)
        return scores, [[json.loads(lines[ends[p] : ends[p + 1]]) for p in row] for row in places]

    yield search
    yield lambda numbers: index.search(vectors[list(numbers)], K)


# --- MiniLM ---------------------------------------------------------------------------------------


def build_encode(folder: Path, count: int) -> None:
    from hopscope.runtime.retrievers import dense

    corpus = generated.passages(count)
    dense.create(corpus, folder, name="generated", encoder="minilm", device="cpu")


def search_encode(ours: Path, bare: Path) -> Iterator[Any]:
    """Encodes passages, both from their texts."""
    from hopscope.runtime.encoders import naming
    from hopscope.runtime.encoders.encoder import load

    passages = list(islice(generated.passages(COMPARED), COMPARED))
    spec = naming.parse("minilm")
    encoder = load(spec, device="cpu")
    yield lambda numbers: encoder.passages([passages[n] for n in numbers]).vectors
    import torch
    from transformers import AutoModel, AutoTokenizer

    place = spec.passages.folder
    tokenizer, model = AutoTokenizer.from_pretrained(place), AutoModel.from_pretrained(place).eval()

    def encode(numbers: Sequence[int]) -> Any:
        """Encode the longest first, 32 at a time, as sentence-transformers does."""
        texts = [f"{passages[n].title} {passages[n].text}" for n in numbers]
        order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
        vectors = np.empty((len(texts), generated.DIMENSION), dtype=np.float32)
        for start in range(0, len(order), MODEL_BATCH):
            batch = order[start : start + MODEL_BATCH]
            given = tokenizer([texts[at] for at in batch], padding=True, truncation=True,
                              max_length=256, return_tensors="pt")  # fmt: skip
            with torch.inference_mode():
                states = model(**given).last_hidden_state
            mask = given["attention_mask"].unsqueeze(-1)
            pooled = (states * mask).sum(1) / mask.sum(1)
            vectors[batch] = torch.nn.functional.normalize(pooled, dim=-1).numpy()
        return vectors

    yield encode


# --- measuring ------------------------------------------------------------------------------------


def built(part: str, who: str, folder: Path, count: int) -> Row:
    name = f"build_{part}" + ("_bare" if who == "bare" else "")
    start, used = perf_counter(), process_time()
    globals()[name](folder, count)
    seconds, processor = perf_counter() - start, process_time() - used
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    told = {"seconds": seconds, "processor_seconds": processor}
    return {**told, "bytes": size, "peak_bytes": peak()}


def searched(part: str, ours: Path, bare: Path, passages: int) -> Row:
    steps = globals()[f"search_{part}"](ours, bare)
    count, alone = (min(COMPARED, passages), 0) if part == "encode" else (QUERIES, ALONE)
    rounds = ENCODE_ROUNDS if part == "encode" else ROUNDS
    every = range(count)
    searches: list[Search] = []
    rows: dict[str, Row] = {}
    for who, search in zip(WHO, steps, strict=False):
        search(every[:100])  # what is loaded at the first use
        rows[who] = latency(search, alone)
        if not searches:  # what others hold would come on top
            rows[who]["peak_bytes"] = peak()
        searches.append(search)
    # (round, search, clock)
    times = np.array([[timed(search, every) for search in searches] for _ in range(rounds)])
    for row, (seconds, used) in zip(rows.values(), np.median(times, axis=0), strict=True):
        row["per_second"] = count / float(seconds)
        row["per_processor_second"] = count / float(used)
    ratios = times[:, 0] / times[:, 1]
    rows["overhead"], rows["processor_overhead"] = overhead(ratios[:, 0]), overhead(ratios[:, 1])
    return rows


def overhead(ratios: NDArray[np.float64]) -> Row:
    """Of pairs, with a 95 % percentile bootstrap."""
    draw = np.random.default_rng(0).integers(0, len(ratios), (RESAMPLES, len(ratios)))
    low, high = (float(end) - 1 for end in np.percentile(np.median(ratios[draw], axis=1), ENDS))
    return {"value": float(np.median(ratios)) - 1, "low": low, "high": high, "n": len(ratios)}


def latency(search: Search, count: int) -> Row:
    """Of one query at a time, in milliseconds."""
    if not count:
        return {}
    seconds = [timed(search, [number])[0] for number in range(count)]
    p50, p95 = (float(value) * 1000 for value in np.percentile(seconds, [50, 95]))
    return {"p50_ms": p50, "p95_ms": p95, "one_by_one_per_second": count / sum(seconds)}


def timed(search: Search, numbers: Sequence[int]) -> tuple[float, float]:
    """Seconds by the clock, and of the processors."""
    start, used = perf_counter(), process_time()
    search(numbers)
    return perf_counter() - start, process_time() - used


def peak() -> int:
    """The most memory this process has had, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def child(*arguments: object) -> Row:
    """One measurement in a process of its own."""
    command = [sys.executable, __file__, "--step", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"ended with {done.returncode}"}
    row: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return row


def measure(part: str, count: int, folder: Path) -> Row:
    count = min(count, ENCODED) if part == "encode" else count
    ours, bare = folder / part, folder / f"{part}-bare"
    row: Row = {"passages": count, "build": {"hopscope": child("build", part, "ours", ours, count)}}
    if part != "encode":
        row["build"]["bare"] = child("build", part, "bare", bare, count)
    failed = [done["error"] for done in row["build"].values() if "error" in done]
    row["search"] = {"error": failed[0]} if failed else child("search", part, ours, bare, count)
    for place in (ours, bare):
        shutil.rmtree(place, ignore_errors=True)
    return row


def step(what: str, part: str, *rest: str) -> Row:
    gc.set_threshold(200_000)  # as the command line does; for both
    if what == "build":
        return built(part, rest[0], Path(rest[1]), int(rest[2]))
    return searched(part, Path(rest[0]), Path(rest[1]), int(rest[2]))


def show(part: str, row: Row) -> None:
    print(f"\n{part}: {row['passages']:,} passages")
    for who, done in row["build"].items():
        if "error" in done:
            print(f"  {who:<9} not measured: {done['error']}")
            return
        rate = row["passages"] / done["seconds"]
        print(
            f"  {who:<9} built in {done['seconds']:,.1f} s ({rate:,.0f}/s), processor time "
            f"{done['processor_seconds']:,.1f} s, "
            f"{done['bytes'] / 1e6:,.1f} MB, peak memory {done['peak_bytes'] / 1e6:,.0f} MB"
        )
    found = row["search"]
    if "error" in found:
        print(f"  not searched: {found['error']}")
        return
    what = "passages encoded" if part == "encode" else "queries"
    for who in [who for who in WHO if who in found]:
        done = found[who]
        told = f"{done['per_second']:,.0f} {what}/s in a batch"
        told += f" ({done['per_processor_second']:,.0f} per second of processor time)"
        if "p50_ms" in done:
            told += f", one at a time p50 {done['p50_ms']:.2f} ms, p95 {done['p95_ms']:.2f} ms"
        if "peak_bytes" in done:
            told += f", peak memory {done['peak_bytes'] / 1e6:,.0f} MB"
        print(f"  {who:<9} {told}")
    for key, by in (("overhead", "the clock"), ("processor_overhead", "processor time")):
        over = found[key]
        print(
            f"  overhead  {over['value']:+.1%} [{over['low']:+.1%}, {over['high']:+.1%}] "
            f"by {by}, {over['n']} pairs"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--passages", type=int, default=PASSAGES)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--folder", type=Path, help="where the indexes are built; else a new one")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(step(*options.step)))
        return
    if options.passages < QUERIES and set(options.only) != {"encode"}:
        parser.error(f"--passages: {QUERIES} at least, but for encode")
    if options.passages < 1:
        parser.error("--passages: 1 at least")
    rows = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        for part in options.only:
            rows[part] = measure(part, options.passages, Path(temporary))
            if not options.json:
                show(part, rows[part])
    if options.json:
        machine = {"processors": os.cpu_count(), "load": os.getloadavg(), **versions()}
        print(json.dumps({"machine": machine, "parts": rows}, indent=2))
    over = [part for part, row in rows.items() if exceeds(row["search"])]
    if over:
        print(f"overhead is over {MOST_OVERHEAD:.0%}: {', '.join(over)}", file=sys.stderr)
        sys.exit(1)


def exceeds(found: Row) -> bool:
    """Whether the overhead surely exceeds the limit: its whole interval lies above."""
    return "overhead" in found and found["overhead"]["low"] > MOST_OVERHEAD


def versions() -> Row:
    from importlib import metadata

    found: Row = {"python": platform.python_version()}
    for name in ("bm25s", "pyserini", "faiss-cpu", "torch", "transformers", "numpy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


if __name__ == "__main__":
    main()
