"""Reports on stored runs, as `hopscope score`, `erag` and `errors` print them.

    with hopscope.Store.open("runs.db") as store:
        runs = [store.run(each.id) for each in store.runs(limit=100)]
    hopscope.score(runs, ["exact_match", "f1"]).averages

Where a text names a reader or an entailment, the part itself may stand. They are loaded only if a
metric needs them.
"""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from hopscope.api import given, parts
from hopscope.api.given import EntailmentPart, ReaderPart
from hopscope.api.measured_run import MeasuredRun
from hopscope.lab.answer_metric import answer_metric
from hopscope.runtime.budget.prices import prices
from hopscope.runtime.code_files import shown
from hopscope.runtime.ports import Reader
from hopscope.runtime.prompting import loading
from hopscope.runtime.types import Run
from hopscope.tracing.erag.report import ERAGReport
from hopscope.tracing.error_decomposition.report import ErrorReport
from hopscope.tracing.scoring.metric import AnswerMetric
from hopscope.tracing.scoring.scores import Scores

_log = logging.getLogger(__name__)

METRICS = ("exact_match", "f1", "contains")
"""The metrics of `score` by default."""

System = Literal["workflow", "retriever", "reader", "pool"]
"""What tells the systems of an error report apart; `pool` compares the retrievers of EoR's runs."""


def score(
    runs: Iterable[Run | MeasuredRun],
    metrics: Sequence[str] = METRICS,
    *,
    reader: ReaderPart = parts.TINY,
    entailment: EntailmentPart = "lexical",
    seed: int = 0,
    prompts: str | Path | None = None,
) -> Scores:
    """Score the answers of runs, one by one and on average.

    Args:
        metrics: names of `hopscope list metrics`, as in `f1:spaced`.
        seed: of the bootstrap of the averages.
        prompts: a folder of prompts, or the name of a set, for metrics that ask a model.

    Raises:
        UsageError: there is no such metric, option or model, or a prompt cannot be used.
        ReaderError, EntailmentError: a model failed.
    """
    from hopscope.tracing.scoring import scores
    from hopscope.tracing.wrappers.metered import MeteredReader

    pinned = None if prompts is None else loading.load(str(prompts)).name
    built: dict[str, AnswerMetric] = {}
    readers: dict[str, MeteredReader] = {}
    for name in dict.fromkeys(metrics):

        def metered(asked: Reader, name: str = shown(name)) -> Reader:
            readers[name] = MeteredReader(asked)
            return readers[name]

        built[shown(name)] = answer_metric(
            name,
            reader=reader,
            entailment=entailment,
            wrap=metered,
            prompts=pinned,
        )
    return scores.score(_records(runs), built, seed=seed, readers=readers, prices=prices())


def erag(
    runs: Iterable[Run | MeasuredRun],
    metric: str = "exact_match",
    *,
    cutoffs: Sequence[int] = (),
    max_tokens: int = 32,
    reader: ReaderPart = parts.TINY,
    entailment: EntailmentPart = "lexical",
    seed: int = 0,
) -> ERAGReport:
    """Rate each retrieved passage by the reader's answer from it alone (eRAG; docs/metrics.md).

    Args:
        metric: rates the answers.
        cutoffs: also measure the first so many ranks.
        max_tokens: of an answer.
        seed: of the reader and of the bootstrap.

    Raises:
        UsageError: there is no such metric, option or model.
        ReaderError, EntailmentError: a model failed on the runs' own answers.
    """
    from hopscope.tracing.erag.labels import ERAG
    from hopscope.tracing.erag.report import erag_report
    from hopscope.tracing.wrappers.cached import CachedReader

    judged = answer_metric(metric, reader=reader, entailment=entailment)
    records = _records(runs)
    _log.info("loading the reader")
    asked = CachedReader(given.reader(reader))
    labels = ERAG(
        asked,
        judged,
        max_tokens=max_tokens,
        seed=seed,
        cutoffs=tuple(cutoffs),
        prompts=parts.prompts_of(reader) or "",
    )
    _log.info("reading each passage alone")
    return erag_report(records, labels, seed=seed)


def decompose_errors(
    runs: Iterable[Run | MeasuredRun],
    metric: str = "exact_match",
    *,
    by: System = "workflow",
    threshold: float = 0.8,
    max_words: int = 5,
    reader: ReaderPart = parts.TINY,
    entailment: EntailmentPart = "lexical",
    seed: int = 0,
) -> ErrorReport:
    """Separate retriever, extraction and hallucination errors and lucky guesses (EoR).

    Args:
        metric: judges the answers; one of at least `threshold` is right.
        by: the field that separates the systems to compare.
        max_words: leaves out questions with a longer gold answer, as no document contains those.
        seed: of the bootstrap.

    Raises:
        UsageError: there is no such metric, option or model, or `pool` meets a run of another
            workflow.
        ReaderError, EntailmentError: a model failed.
    """
    from hopscope.tracing.error_decomposition.report import error_report

    records = _records(runs)
    if by == "pool":
        from hopscope.lab.eor.members import members

        records = members(records)
    return error_report(
        records,
        answer_metric(metric, reader=reader, entailment=entailment),
        by="workflow" if by == "pool" else by,
        threshold=threshold,
        max_words=max_words,
        seed=seed,
    )


def _records(runs: Iterable[Run | MeasuredRun]) -> list[Run]:
    return [run.record if isinstance(run, MeasuredRun) else run for run in runs]
