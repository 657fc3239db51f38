"""A source of questions from a file, with the passages that it gives or that a corpus holds.

The gold passages of a question are those that its record marks, else those of the corpus that its
judgments (qrels) or its supporting titles name. The corpus is a given one, else all passages of the
file. Questions are taken in the stratified order of `lab.dataset.ordering`, as in experiments. A
question's candidates are those of its record, or a given ranking's, whose texts are the corpus's.

Invariant: where any question has a gold answer, questions without one are left out; likewise for
gold passages. `left_out` counts them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Protocol, runtime_checkable
from urllib.parse import unquote

from hopscope.lab.dataset import dataset, judged, qrels, trec_run
from hopscope.lab.dataset.dataset import Dataset
from hopscope.lab.dataset.trec_run import Ranked
from hopscope.lab.datasets import Judged
from hopscope.lab.export.trec import question_id
from hopscope.lab.suites.known import KnownQuestion, Need
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Retriever
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import Passage
from hopscope.store.experiments.records import DatasetEntry

HAS: Mapping[str, Callable[[KnownQuestion], bool]] = {
    "no gold answer": lambda one: bool(one.question.answers),
    "no gold passage": lambda one: bool(one.gold),
}
"""What a question should have, by what is said of one without."""
UNRANKED = "no candidates"
"""What is said of a question that a given ranking leaves out."""


@runtime_checkable
class PassageList(Protocol):
    """A retriever that can list its passages."""

    @property
    def passages(self) -> Sequence[Passage]: ...


@dataclass(frozen=True)
class QuestionFile:
    """The questions of a file over a corpus."""

    name: str
    digest: str
    """Hash of all questions."""
    known: tuple[KnownQuestion, ...]
    """In stratified order."""
    retriever: Retriever
    passages: Sequence[Passage]
    left_out: Mapping[str, int]
    """The numbers of questions left out, by reason."""

    @cached_property
    def hops(self) -> tuple[int, ...]:
        return tuple(sorted({one.hops for one in self.known if one.gold}))

    @property
    def lacks(self) -> dict[Need, str]:
        remedies = {
            Need.ANSWERS: "no question has gold answers: add a field answers",
            Need.GOLD: "no question has gold passages: give its passages with is_supporting, or "
            "titles under supporting with --corpus, or --qrels FILE with --corpus, or a "
            "lower --grade",
            Need.CHAINS: "no question has two gold passages or more",
            Need.PASSAGES: "the corpus cannot list its passages: give the folder of an index of "
            "kind bm25, dense or lucene, or a file whose questions have passages",
            Need.WORLD: "it needs the facts of a generated world: run it without --data",
        }
        there = {
            Need.ANSWERS: any(one.question.answers for one in self.known),
            Need.GOLD: bool(self.hops),
            Need.CHAINS: any(hops > 1 for hops in self.hops),
            Need.PASSAGES: bool(self.passages),
            Need.WORLD: False,
        }
        return {need: remedies[need] for need in Need if not there[need]}

    def questions(self, hops: int, n: int) -> list[KnownQuestion]:
        """The first `n` questions with so many gold passages, or as many as there are."""
        return [one for one in self.known if one.gold and one.hops == hops][:n]

    def mixed(self, n: int) -> list[KnownQuestion]:
        """The first `n` questions."""
        return list(self.known[:n])


def load(
    place: str,
    *,
    corpus: Retriever | None = None,
    labels: Path | None = None,
    grade: int = 1,
    candidates: Path | None = None,
) -> QuestionFile:
    """Read a file of questions.

    Args:
        corpus: searched in place of the file's own passages.
        labels: qrels, whose passages are those of the corpus.
        grade: the least label of a gold passage.
        candidates: a TREC run, whose rankings take the place of the records' candidates. Questions
            without one are left out.

    Raises:
        UsageError: the file has no questions of a known form, there is nothing to search, or the
            run is malformed or names a question or passage that does not exist.
    """
    data = dataset.load(place)
    given = {
        entry.hash: own
        for entry, own in zip(data.entries, judged.passages(place, data), strict=True)
    }
    pooled = _distinct(one.passage for own in given.values() for one in own)
    if corpus is None:
        if not pooled:
            raise UsageError(
                f"{place} has no passages to search: give --corpus INDEX, made with `hopscope "
                "index build`, for example\n  hopscope index build CORPUS.jsonl --out INDEX\n"
                f"  hopscope lab --data {quote(place)} --corpus INDEX"
            )
        corpus = bm25.from_passages(pooled, name=data.name)
    listed = corpus.passages if isinstance(corpus, PassageList) else ()
    judged_by = {} if labels is None else qrels.read(labels)
    named = _named(data, given, listed, judged_by, labels is not None, grade)
    ranked = None if candidates is None else _ranked(candidates, data, listed or pooled)
    every = [
        KnownQuestion(
            entry.question,
            named.get(entry.hash)
            or _distinct(o.passage for o in given[entry.hash] if o.supporting),
            candidates=ranked.get(entry.hash, ())
            if ranked is not None
            else tuple(one.passage for one in given[entry.hash]),
            grades=judged_by.get(entry.question.id, {}),
            ranked=ranked is not None,
        )
        for entry in data.choose(order="stratified")
    ]
    known, left_out = _usable(every)
    if candidates is not None:
        listing = [one for one in known if one.candidates]
        if not listing:
            raise UsageError(f"{candidates} ranks passages for none of the questions with gold")
        left_out |= {UNRANKED: len(known) - len(listing)} if len(listing) < len(known) else {}
        known = listing
    return QuestionFile(data.name, data.digest, tuple(known), corpus, listed or pooled, left_out)


def _ranked(
    run: Path, data: Dataset, passages: Sequence[Passage]
) -> dict[str, tuple[Passage, ...]]:
    """The passages that a TREC run ranks, best first, by the hash of the question.

    Raises:
        UsageError: a question or a passage does not exist.
    """
    asked = {question_id(entry.question): entry.hash for entry in data.entries}
    rankings = trec_run.read(run)
    # Ids with white space are quoted where Hopscope wrote the run.
    wanted = {
        form for of in rankings.values() for r in of for form in (r.passage, unquote(r.passage))
    }
    there = {passage.key: passage for passage in passages if passage.key in wanted}
    if not passages:
        raise UsageError(
            "--candidates takes the texts from the corpus, and this one cannot list its passages: "
            "give the folder of an index of kind bm25, dense or lucene"
        )

    def passage(one: Ranked) -> Passage:
        found = there.get(one.passage) or there.get(unquote(one.passage))
        if found is None:
            raise UsageError(
                f"{run}, line {one.line}: the corpus has no passage {one.passage:.60}; its ids "
                f"are like {passages[0].key}"
            )
        return found

    found: dict[str, tuple[Passage, ...]] = {}
    for question, of in rankings.items():
        hash = asked.get(question) or asked.get(unquote(question))
        if hash is None:
            line = min(one.line for one in of)
            raise UsageError(
                f"{run}, line {line}: {data.name} has no question {question:.60}; its ids are "
                f"like {next(iter(asked))}"
            )
        found[hash] = tuple(map(passage, of))
    return found


def _usable(every: Sequence[KnownQuestion]) -> tuple[list[KnownQuestion], dict[str, int]]:
    left_out: dict[str, int] = {}
    known = list(every)
    for reason, has in HAS.items():
        kept = [one for one in known if has(one)]
        if kept and len(kept) < len(known):
            left_out[reason] = len(known) - len(kept)
            known = kept
    return known, left_out


def _named(
    data: Dataset,
    given: Mapping[str, Sequence[Judged]],
    listed: Sequence[Passage],
    relevant: Mapping[str, Mapping[str, int]],
    by_labels: bool,
    grade: int,
) -> dict[str, tuple[Passage, ...]]:
    """Gold passages of the corpus by the hash of the question: those that judgments name, else
    those whose titles support a question whose record has no passages. A question of which one is
    missing in the corpus has none."""
    wanted = {
        entry.hash: _wanted(entry, relevant, grade) if by_labels else entry.supporting
        for entry in data.entries
        if by_labels or not given[entry.hash]
    }
    names = {name for each in wanted.values() for name in each}
    there: dict[str, list[Passage]] = {}
    for passage in listed if names else ():
        name = passage.key if by_labels else passage.title
        if name in names:
            there.setdefault(name, []).append(passage)
    return {
        key: _distinct(passage for name in each for passage in there[name])
        for key, each in wanted.items()
        if each and all(name in there for name in each)
    }


def _wanted(
    entry: DatasetEntry, relevant: Mapping[str, Mapping[str, int]], grade: int
) -> Sequence[str]:
    own = relevant.get(entry.question.id, {})
    return [key for key, label in own.items() if label >= grade]


def _distinct(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    return tuple({passage.key: passage for passage in passages}.values())
