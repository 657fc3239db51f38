"""Answers that Llama-3.1-8B-Instruct gave to real questions, and the passages of two of the sets.

It answered 500 questions each of six sets without retrieval, with one, and by IRCoT
(llama8b_routes_dev.jsonl of the research data; AdaRAGUE, arXiv 2501.12835).
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import Passage, Question
from hopscope.tracing.answer_metrics import lexical_match
from hopscope.tracing.scoring.metric import AnswerMetric, Case

ANSWERS = "llama8b_routes_dev.jsonl"
PASSAGES = {"hotpotqa": "hotpotqa_train500.jsonl", "2wikimultihopqa": "2wiki_train500.jsonl"}
ROUTES = ("none", "one", "ircot")
LISTED = 10
"""Passages of a ranking."""

Row = Mapping[str, Any]


class Answered(NamedTuple):
    """The questions of one set with the answers of all routes."""

    rows: Sequence[Row]

    @property
    def questions(self) -> list[Question]:
        return [
            Question(text=row["question"], answers=tuple(row["answers"]), id=str(row["id"]))
            for row in self.rows
        ]

    def cases(self, route: str) -> list[Case]:
        pairs = zip(self.questions, self.rows, strict=True)
        return [Case(question, row["predictions"][route]) for question, row in pairs]

    def right(self, route: str) -> list[bool]:
        """Lexical match: the verdict of the file itself."""
        return [value == 1.0 for value in scored(lexical_match.build(), self.cases(route))]


class Searched(NamedTuple):
    """The passages of a set's records in one corpus, and what BM25 finds there."""

    given: Sequence[Sequence[Passage]]
    """Of each question, its record's own."""
    gold: Sequence[frozenset[str]]
    found: Sequence[Sequence[Passage]]
    """The first `LISTED` hits of each question."""


def scored(metric: AnswerMetric, cases: Sequence[Case]) -> list[float]:
    return [found.value or 0.0 for found in metric.score(cases)]


def read(folder: Path) -> dict[str, Answered]:
    rows = lines(folder / ANSWERS)
    names = dict.fromkeys(row["dataset"] for row in rows)
    return {name: Answered([row for row in rows if row["dataset"] == name]) for name in names}


def lines(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def searched(file: Path, answered: Answered) -> Searched:
    by_id = {row["id"]: row["passages"] for row in lines(file)}
    kept = [by_id[row["id"]] for row in answered.rows]
    given = [[Passage(title=p["title"], text=p["text"]) for p in own] for own in kept]
    gold = [
        frozenset(passage.key for passage, p in zip(own, raw, strict=True) if p["is_supporting"])
        for own, raw in zip(given, kept, strict=True)
    ]
    corpus = {passage.key: passage for own in given for passage in own}
    index = bm25.from_passages(list(corpus.values()), name=file.stem)
    hits = index.search([question.text for question in answered.questions], k=LISTED)
    return Searched(given, gold, [[hit.passage for hit in row] for row in hits])
