"""Recall of BM25, MiniLM, their hybrids and a reranking on multi-hop questions.

    python benchmarks/recall.py [--data FOLDER] [--only NAME] [--cache FOLDER] [--json]

The supporting passages of each question are known. recall@k is their share among the first k
passages, averaged over questions; all@k is the share of questions with all of them there, which a
multi-hop answer needs. MRR@10 is the mean of 1/rank of the first of them, 0 if none is among the
first ten. Intervals are 95 % percentile bootstraps over questions; differences from
BM25 are paired by question.

Vectors take minutes: `--cache FOLDER` keeps the indexes for the next time. Without the extra
`minilm` only BM25 is measured, and the others are null with the reason.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import research_data
from numpy.typing import NDArray

from hopscope.runtime.corpora.corpus import Corpus
from hopscope.runtime.errors import MissingExtraError
from hopscope.runtime.fusions import rrf, weighted
from hopscope.runtime.indexes.index_folder import read_manifest
from hopscope.runtime.rerankers.encoder import ByEncoder, VectorEncoder
from hopscope.runtime.retrievers import bm25, dense
from hopscope.runtime.stages import Candidates
from hopscope.runtime.types import Hit, Passage, digest
from hopscope.tracing.statistics.intervals import quantiles

CUTS = (2, 5, 10, 20)
MRR_CUT = 10
MRR = f"MRR@{MRR_CUT}"
FUSED = 100
"""Passages of each ranking, as many as `rrf(a,b)` requests."""
SEED, RESAMPLES = 0, 10_000
ENCODER = "minilm"
NOT_RUN = {
    "@RR(cross_encoder:MODEL)": "needs trained weights, which no extra brings",
    "@RR(listwise), @RR(utility)": "need a reader that knows real text, which no extra brings",
}
Row = dict[str, Any]
Rankings = Sequence[Sequence[Hit]]
Values = NDArray[np.float64]


class LabeledQuestion(NamedTuple):
    """A question and the labels of its supporting passages."""

    text: str
    supporting: frozenset[str]
    """Labels of passages."""


@dataclass(frozen=True)
class Dataset:
    """Questions over a corpus."""

    name: str
    passages: tuple[Passage, ...]
    questions: tuple[LabeledQuestion, ...]
    by_title: bool = False
    """Whether labels are titles only."""

    def label(self, passage: Passage) -> str:
        return passage.title if self.by_title else passage.key

    @property
    def fingerprint(self) -> str:
        return digest(*(passage.key for passage in self.passages))[:12]


def corpus_2wiki(corpus: Path, questions: Path) -> Dataset:
    """2WikiMultiHopQA: the questions all of whose supporting titles are in the corpus."""
    rows = lines(questions)
    asked = (LabeledQuestion(row["question"], frozenset(row["supporting_titles"])) for row in rows)
    passages = tuple(Corpus(corpus))
    return Dataset("2wiki", passages, tuple(asked), by_title=True)


def pooled(name: str, rows: Sequence[Row]) -> Dataset:
    """The passages of all questions in one corpus, each once."""
    passages: dict[str, Passage] = {}
    asked = []
    for row in rows:
        supporting = set()
        for given in row["passages"]:
            passage = Passage(title=given["title"], text=given["text"])
            passages.setdefault(passage.key, passage)
            if given["is_supporting"]:
                supporting.add(passage.key)
        asked.append(LabeledQuestion(row["question"], frozenset(supporting)))
    kept = tuple(question for question in asked if question.supporting)
    return Dataset(name, tuple(passages.values()), kept)


def musique(file: Path) -> Dataset:
    """MuSiQue: 2 to 4 hops."""
    rows = json.loads(file.read_text(encoding="utf-8"))
    for row in rows:
        row["passages"] = [p | {"text": p["paragraph_text"]} for p in row["paragraphs"]]
    return pooled("musique", rows)


DATASETS: dict[str, tuple[Sequence[str], Callable[..., Dataset]]] = {
    "2wiki": (("2wiki_corpus_6119.json", "2wiki_corpus_questions_354.jsonl"), corpus_2wiki),
    "hotpotqa-train500": (
        ("hotpotqa_train500.jsonl",),
        lambda file: pooled("hotpotqa-train500", lines(file)),
    ),
    "2wiki-train500": (
        ("2wiki_train500.jsonl",),
        lambda file: pooled("2wiki-train500", lines(file)),
    ),
    "musique": (("musique_train100.json",), musique),
}
"""By name: the files and their reader."""


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def found(dataset: Dataset, ranking: Sequence[Hit], asked: LabeledQuestion, k: int) -> float:
    """The share of the supporting passages among the first `k`."""
    labels = {dataset.label(hit.passage) for hit in ranking[:k]}
    return len(asked.supporting & labels) / len(asked.supporting)


def reciprocal(dataset: Dataset, ranking: Sequence[Hit], asked: LabeledQuestion) -> float:
    """1/rank of the first supporting passage, 0 if none is among the first `MRR_CUT`."""
    ranks = (
        rank
        for rank, hit in enumerate(ranking[:MRR_CUT], start=1)
        if dataset.label(hit.passage) in asked.supporting
    )
    return 1 / next(ranks, float("inf"))


def measures(dataset: Dataset, rankings: Rankings) -> dict[str, Values]:
    """Each measure, question by question."""
    values: dict[str, Values] = {}
    for k in CUTS:
        pairs = zip(rankings, dataset.questions, strict=True)
        shares = np.array([found(dataset, ranking, asked, k) for ranking, asked in pairs])
        values |= {f"recall@{k}": shares, f"all@{k}": (shares == 1).astype(float)}
    pairs = zip(rankings, dataset.questions, strict=True)
    values[MRR] = np.array([reciprocal(dataset, ranking, asked) for ranking, asked in pairs])
    return values


def mean(values: Values) -> Row:
    """A mean with its interval; all systems share the resamples, so that differences are paired."""
    draw = np.random.default_rng(SEED).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = quantiles(values[draw].mean(axis=1))
    return {"value": float(values.mean()), "low": low, "high": high}


@dataclass(frozen=True)
class Held:
    """An encoder that reads the vectors of passages from an index."""

    encoder: VectorEncoder
    vectors: Mapping[str, NDArray[np.float32]]

    @property
    def name(self) -> str:
        return self.encoder.name

    def queries(self, texts: Sequence[str]) -> Any:
        return self.encoder.queries(texts)

    def passages(self, passages: Sequence[Passage]) -> Any:
        from hopscope.runtime.encoders.encoder import Encoded

        found = np.array([self.vectors[passage.key] for passage in passages])
        return Encoded(found, over=(False,) * len(passages))


def rank(dataset: Dataset, cache: Path) -> Iterator[tuple[str, Rankings]]:
    """Each system's expression, with its rankings for all questions.

    Raises:
        MissingExtraError: after BM25, if there is no faiss or no MiniLM.
    """
    queries = [asked.text for asked in dataset.questions]
    place = cache / f"{dataset.name}-{dataset.fingerprint}"
    words, vectors = place.with_name(f"{place.name}.bm25"), place.with_name(f"{place.name}.dense")
    if not words.is_dir():
        bm25.create(dataset.passages, words, name=dataset.name)
    lexical = bm25.build(index=words).search(queries, k=FUSED)
    yield "bm25", lexical
    if not vectors.is_dir():
        dense.create(dataset.passages, vectors, name=dataset.name, encoder=ENCODER)
    nearest = dense.build(index=vectors).search(queries, k=FUSED)
    yield "dense", nearest
    both = list(zip(lexical, nearest, strict=True))
    yield "rrf(bm25,dense)", [rrf.build().fuse(pair, [1, 1]) for pair in both]
    for norm in ("min_max", "z_score"):
        fusion = weighted.build(norm=norm)
        yield f"weighted(bm25,dense,norm={norm})", [fusion.fuse(pair, [1, 1]) for pair in both]
    reranker = ByEncoder(held(vectors))
    for depth in (20, 100):
        asked = zip(queries, lexical, strict=True)
        given = [Candidates(query, tuple(hits[:depth])) for query, hits in asked]
        yield f"bm25@{depth}@RR(encoder:{ENCODER})", [r.hits for r in reranker.rerank(given)]


def held(index: Path) -> Held:
    """The vectors of a dense index by the keys of its passages."""
    from hopscope.runtime.encoders import naming
    from hopscope.runtime.encoders.encoder import load
    from hopscope.runtime.indexes import passage_file
    from hopscope.runtime.retrievers.dense import faiss_index as _faiss

    flat = _faiss.read(index / dense.INDEX, dense.FLAT)
    passages = passage_file.PassageFile(index)
    matrix = flat.reconstruct_n(0, flat.ntotal)
    rows = zip(passages, matrix, strict=True)
    return Held(load(naming.parse(ENCODER)), {passage.key: vector for passage, vector in rows})


def measure(dataset: Dataset, cache: Path) -> Row:
    """The measurements of one dataset."""
    result: Row = {
        "dataset": dataset.name,
        "questions": len(dataset.questions),
        "passages": len(dataset.passages),
        "systems": {},
    }
    baseline: dict[str, Values] = {}
    try:
        for system, rankings in rank(dataset, cache):
            values = measures(dataset, rankings)
            baseline = baseline or values
            result["systems"][system] = {
                name: mean(each) | {"minus_bm25": mean(each - baseline[name])}
                for name, each in values.items()
            }
        [manifest] = map(read_manifest, cache.glob(f"*{dataset.fingerprint}.dense"))
        result["cut"] = manifest.counts["cut"]
    except MissingExtraError as error:
        result["systems"]["dense"] = None
        result["unmeasured"] = str(error)
    return result


def show(result: Row) -> None:
    """Print the table of the documentation."""
    questions, passages = result["questions"], result["passages"]
    print(f"\n{result['dataset']}: {questions} questions, {passages:,} passages")
    heads = [*(f"{kind}@{k}" for kind in ("recall", "all") for k in CUTS), MRR]
    print(f"\n| Retriever | {' | '.join(heads)} | recall@5 less BM25's |")
    print("|---" * (len(heads) + 2) + "|")
    for system, row in result["systems"].items():
        if row is None:
            print(f"\n{system} and what is made of it not measured: {result['unmeasured']}")
            continue
        cells = [interval(row[head]) for head in heads]
        print(f"| `{system}` | {' | '.join(cells)} | {interval(row['recall@5']['minus_bm25'])} |")


def interval(measured: Row) -> str:
    """`.512 [.498, .526]`."""
    value, low, high = (
        f"{measured[key]:.3f}".replace("0.", ".") for key in ("value", "low", "high")
    )
    return f"{value} [{low}, {high}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    research_data.add_option(parser)
    parser.add_argument("--only", choices=DATASETS, help="one of the datasets")
    parser.add_argument("--cache", type=Path, help="where indexes are kept")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        cache = options.cache or Path(temporary)
        cache.mkdir(parents=True, exist_ok=True)
        for name in [options.only] if options.only else DATASETS:
            files, load = DATASETS[name]
            if reason := research_data.missing(options.data, files):
                print(f"skipped {name}: {reason}", file=sys.stderr)
                continue
            results.append(measure(load(*(options.data / file for file in files)), cache))
            if not options.json:
                show(results[-1])
    told = {"seed": SEED, "resamples": RESAMPLES, "estimator": "mean, percentile bootstrap"}
    if options.json:
        print(json.dumps({"datasets": results, "not_run": NOT_RUN, **told}, indent=2))
        return
    print()
    for system, reason in NOT_RUN.items():
        print(f"{system}: not run: {reason}")


if __name__ == "__main__":
    main()
