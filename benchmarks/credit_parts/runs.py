"""The runs to measure."""

from datetime import UTC, datetime
from typing import Any

from credit_parts.bench import Benchmark
from hopscope.api import parts
from hopscope.runtime.execution.run import run
from hopscope.runtime.types import Hit, Passage, Question, Run, Step

STARTED = datetime(2026, 1, 1, tzinfo=UTC)
"""The workflow's name of constructed runs."""


def trajectories(bench: Benchmark) -> list[Run]:
    """The runs to measure, by a reader of their own."""
    deps = bench.deps(bench.reader())
    workflow = parts.workflow("ircot", {})
    runs = [run(workflow, question, deps) for question in bench.questions()]
    if failed := [found.error for found in runs if found.status != "ok"]:
        raise SystemExit(f"{len(failed)} runs failed: {failed[0]}")
    return runs


def deep(question: Question, retriever: Any, *, steps: int, k: int, words: int = 0) -> Run:
    """A constructed run: each retrieval has k passages of its own; `words` of padding make
    passages longer."""
    hits: list[Hit] = retriever.search([question.text], k=steps * k)[0]
    held: tuple[Passage, ...] = ()
    taken: list[Step] = []
    for t in range(steps):
        found = tuple(_padded(hit.passage, words) for hit in hits[t * k : (t + 1) * k])
        held = (*held, *found)
        taken.append(
            Step(
                index=t,
                name="retrieve",
                kind="retrieve",
                query=question.text,
                ranked=tuple(Hit(passage=p, score=1.0) for p in found),
                new=tuple(p.key for p in found),
                shown=tuple(p.key for p in held),
                evidence=held,
                started=STARTED,
                seconds=0.0,
            )
        )
    return Run(
        id=f"deep-{question.text}",
        question=question,
        workflow="ircot",
        steps=tuple(taken),
        answer="",
        started=STARTED,
    )


def _padded(passage: Passage, words: int) -> Passage:
    more = (passage.text.split() * (1 + words // max(1, len(passage.text.split()))))[:words]
    return passage.model_copy(update={"text": " ".join([passage.text, *more])})
