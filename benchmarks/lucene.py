"""Hopscope's BM25 compared with Lucene's own, by pyserini's Anserini jar.

    python benchmarks/lucene.py [--data FOLDER] [--json]

Corpus: 6,119 passages of 2WikiMultiHopQA, title and text indexed together; queries: 354 questions.
It prints the share of the first ten passages that the embedded BM25 and Lucene have in common (it
must be .98), the number of questions with equal rankings by Hopscope's Lucene and by Anserini's own
indexer and searcher, and the speed of each. Intervals are 95 % percentile bootstraps over
questions. Needs `pip install 'hopscope[lucene]'`.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import research_data

CORPUS, QUESTIONS = "2wiki_corpus_6119.json", "2wiki_corpus_questions_354.jsonl"
DEPTH = 10
LEAST_OVERLAP = 0.98
RESAMPLES = 10_000


class Unavailable(Exception):
    """The reason why Lucene cannot run here."""


class Ranked(NamedTuple):
    """Lucene's rankings and their time."""

    ids: list[list[str]]
    build_seconds: float
    search_seconds: float


def rank(
    passages: Sequence[tuple[str, str]], queries: Sequence[str], *, k: int, folder: Path
) -> Ranked:
    """Index `(id, content)` pairs in `folder` and search them, k1 0.9 and b 0.4, by Anserini
    alone."""
    java = _java()
    start = perf_counter()
    source, index = folder / "lucene-source", folder / "lucene-index"
    source.mkdir()
    with (source / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for id, contents in passages:
            file.write(json.dumps({"id": id, "contents": contents}) + "\n")
    arguments = ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator"]
    arguments += ["-quiet", "-threads", "1", "-input", str(source), "-index", str(index)]
    java("io.anserini.index.IndexCollection").main(arguments)
    build_seconds = perf_counter() - start
    searcher = java("io.anserini.search.SimpleSearcher")(str(index))
    searcher.set_bm25(0.9, 0.4)
    start = perf_counter()
    ids = [[hit.docid for hit in searcher.search(query, k)] for query in queries]
    return Ranked(ids, build_seconds, perf_counter() - start)


def _java() -> Any:
    """Java classes by name."""
    from hopscope.runtime.errors import HopscopeError
    from hopscope.runtime.retrievers.lucene import jvm

    try:
        return jvm.classes()
    except HopscopeError as error:
        raise Unavailable(str(error)) from None


def measure(data: Path) -> dict[str, Any]:
    """The measurements of this benchmark."""
    import numpy as np

    from hopscope.runtime.corpora.corpus import Corpus
    from hopscope.runtime.retrievers import bm25
    from hopscope.runtime.retrievers import lucene as ours

    lines = (data / QUESTIONS).read_text(encoding="utf-8").splitlines()
    queries = [json.loads(line)["question"] for line in lines]
    passages = list(Corpus(data / CORPUS))
    contents = [(passage.id, f"{passage.title} {passage.text}") for passage in passages]
    speeds: dict[str, dict[str, float]] = {}
    rankings: dict[str, list[list[str]]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        theirs = rank(contents, queries, k=DEPTH, folder=folder)
        rankings["anserini"] = theirs.ids
        one_by_one = len(queries) / theirs.search_seconds
        speeds["anserini"] = {"build_seconds": theirs.build_seconds, "one_by_one": one_by_one}
        for name, module in (("lucene", ours), ("bm25", bm25)):
            start = perf_counter()
            module.create(passages, folder / name, name="2wiki")
            built = perf_counter()
            retriever = module.build(index=folder / name)
            retriever.search(queries, k=DEPTH)  # Java compiles what it has run often
            opened = perf_counter()
            alone = [retriever.search([query], k=DEPTH)[0] for query in queries]
            searched = perf_counter()
            together = retriever.search(queries, k=DEPTH)
            batch = perf_counter() - searched
            assert together == alone
            rankings[name] = [[hit.passage.id for hit in hits] for hits in together]
            speeds[name] = {
                "build_seconds": built - start,
                "one_by_one": len(queries) / (searched - opened),
                "batch": len(queries) / batch,
            }
    pairs = zip(rankings["bm25"], rankings["anserini"], strict=True)
    shared = np.array([len(set(a) & set(b)) / len(b) for a, b in pairs])
    draw = np.random.default_rng(0).integers(0, len(shared), (RESAMPLES, len(shared)))
    low, high = np.percentile(shared[draw].mean(axis=1), [2.5, 97.5])
    same = sum(map(list.__eq__, rankings["lucene"], rankings["anserini"]))
    return {
        "passages": len(passages),
        "questions": len(queries),
        "overlap@10": {"value": float(shared.mean()), "low": float(low), "high": float(high)},
        "same_ranking_as_anserini": same,
        "queries_per_second": speeds,
    }


def show(result: dict[str, Any]) -> None:
    print(f"2WikiMultiHopQA: {result['questions']} questions, {result['passages']:,} passages")
    overlap = result["overlap@10"]
    print(
        f"bm25 shares with Lucene, of the first {DEPTH}: {overlap['value']:.4f} "
        f"[{overlap['low']:.4f}, {overlap['high']:.4f}]"
    )
    same = result["same_ranking_as_anserini"]
    print(f"lucene ranks as Anserini's own searcher: {same} of {result['questions']} questions")
    for name, speed in result["queries_per_second"].items():
        batch = f", {speed['batch']:,.0f} in a batch" if "batch" in speed else ""
        print(
            f"{name:<10}built in {speed['build_seconds']:.2f} s, "
            f"{speed['one_by_one']:,.0f} queries/s one by one{batch}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    research_data.add_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if reason := research_data.missing(options.data, (CORPUS, QUESTIONS)):
        print(f"skipped: {reason}", file=sys.stderr)
        return
    try:
        result = measure(options.data)
    except Unavailable as reason:
        print(f"not measured: {reason}", file=sys.stderr)
        return
    print(json.dumps(result, indent=2)) if options.json else show(result)
    if result["overlap@10"]["value"] < LEAST_OVERLAP:
        print(f"overlap@10 is under {LEAST_OVERLAP}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
