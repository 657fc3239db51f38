"""Recall of our BM25 on real text, with Lucene beside it.

    python benchmarks/recall.py [--data FOLDER] [--json]

Corpus: 6,119 passages of 2WikiMultiHopQA, title and text indexed together; queries: the 354
questions all of whose supporting titles are in it. Recall@k is the share of a question's
supporting titles among the titles of the first k passages, averaged over questions; intervals
are 95 % percentile bootstraps over questions.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import lucene
import numpy as np

from hopscope.runtime.corpus import Corpus
from hopscope.runtime.retrievers import bm25

DATA = Path(__file__).parents[2] / "shared" / "data"
CORPUS, QUESTIONS = "2wiki_corpus_6119.json", "2wiki_corpus_questions_354.jsonl"
CUTS = (2, 5, 10)
RESAMPLES = 10_000
Row = dict[str, Any]


def recalls(titles: list[list[str]], supporting: list[set[str]], k: int) -> list[float]:
    """Recall@k of each question."""
    pairs = zip(titles, supporting, strict=True)
    return [len(wanted & set(found[:k])) / len(wanted) for found, wanted in pairs]


def summary(titles: list[list[str]], supporting: list[set[str]]) -> Row:
    """Mean recall at each cut with its interval."""
    draw = np.random.default_rng(0).integers(0, len(titles), (RESAMPLES, len(titles)))
    row: Row = {}
    for k in CUTS:
        values = np.array(recalls(titles, supporting, k))
        low, high = np.percentile(values[draw].mean(axis=1), [2.5, 97.5])
        row[f"recall@{k}"] = {"value": values.mean(), "low": low, "high": high}
    return row


def measure(data: Path) -> Row:
    """Everything this benchmark tells."""
    lines = (data / QUESTIONS).read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    queries = [question["question"] for question in questions]
    supporting = [set(question["supporting_titles"]) for question in questions]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        start = perf_counter()
        manifest = bm25.create(Corpus(data / CORPUS), folder / "index", name="2wiki")
        build_seconds = perf_counter() - start
        start = perf_counter()
        retriever = bm25.build(index=folder / "index")
        load_seconds = perf_counter() - start
        start = perf_counter()
        ranked = retriever.search(queries, k=max(CUTS))
        seconds = perf_counter() - start
        ours = [[hit.passage.id for hit in hits] for hits in ranked]
        result: Row = {
            "questions": len(queries),
            "passages": manifest.counts["passages"],
            "hopscope": summary([[h.passage.title for h in hits] for hits in ranked], supporting)
            | {
                "build_seconds": build_seconds,
                "load_seconds": load_seconds,
                "queries_per_second": len(queries) / seconds,
            },
        }
        passages = list(Corpus(data / CORPUS))
        title = {passage.id: passage.title for passage in passages}
        contents = [(passage.id, f"{passage.title} {passage.text}") for passage in passages]
        try:
            theirs = lucene.rank(contents, queries, k=max(CUTS), folder=folder)
        except lucene.Unavailable as reason:
            result["lucene"] = None
            result["lucene_unavailable"] = str(reason)
            return result
    result["lucene"] = summary([[title[id] for id in ids] for ids in theirs.ids], supporting) | {
        "build_seconds": theirs.build_seconds,
        "queries_per_second": len(queries) / theirs.search_seconds,
    }
    shared = [len(set(a) & set(b)) / max(CUTS) for a, b in zip(ours, theirs.ids, strict=True)]
    result["overlap@10"] = sum(shared) / len(shared)
    result["same_ranking"] = sum(map(list.__eq__, ours, theirs.ids)) / len(ours)
    return result


def show(result: Row) -> None:
    print(f"2WikiMultiHopQA: {result['questions']} questions, {result['passages']:,} passages")
    for system in ("hopscope", "lucene"):
        row = result[system]
        if row is None:
            print(f"lucene    not measured: {result['lucene_unavailable']}")
            continue
        cells = [
            f"recall@{k} {row[f'recall@{k}']['value']:.3f} "
            f"[{row[f'recall@{k}']['low']:.3f}, {row[f'recall@{k}']['high']:.3f}]"
            for k in CUTS
        ]
        speed = f"built in {row['build_seconds']:.2f} s, {row['queries_per_second']:,.0f} queries/s"
        print(f"{system:<10}{'  '.join(cells)}  {speed}")
    if result["lucene"]:
        print(f"overlap@10 {result['overlap@10']:.3f}, same ranking {result['same_ranking']:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the 2Wiki files")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    missing = [name for name in (CORPUS, QUESTIONS) if not (options.data / name).is_file()]
    if missing:
        print(f"skipped: {', '.join(missing)} not in {options.data}; give --data", file=sys.stderr)
        return
    result = measure(options.data)
    print(json.dumps(result, indent=2)) if options.json else show(result)


if __name__ == "__main__":
    main()
