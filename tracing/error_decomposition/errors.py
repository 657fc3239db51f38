"""EoR's error decomposition: the place between retrieval and answer where a run failed.

"In" means normalised containment of whole words; the document is all passages that a model was
shown, each tested by itself:

    retriever error      no gold is in the document
    hallucination error  the answer is not in the document
    extraction error     a gold and the answer are in it, and the answer is wrong
    lucky guess          neither is in it, and the answer is right

The paper assumes that a right answer is one of the gold strings. Two cases contradict that; they
are residual, not errors: a right answer that is not in the document although a gold is, and one
that is although no gold is. Equation 4 sums to the share of failures + residual. A step that asked
a model without any document has both retriever and hallucination error. Yes and no are seldom in
documents: for such questions the decomposition says little.

Source: Li et al. 2024 (arXiv 2405.20680), section 3.1 and appendix B.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from hopscope.runtime.texts.answers import Normaliser, contains
from hopscope.runtime.types import Measurement, Passage, Record, Run
from hopscope.tracing.reports.shown import asked_a_model, passages_by_key, shown_passages
from hopscope.tracing.statistics.averages import share

Residual = Literal["right, in no document", "right, in a document without gold"]

MAX_WORDS = 5
"""Answers longer than this seldom occur in a document word for word."""


class AnswerErrors(Record):
    """The errors between one document and one answer."""

    retriever: bool
    hallucination: bool
    extraction: bool
    lucky_guess: bool
    correct: bool
    residual: Residual | None = None
    """Set in the two cases that the decomposition does not cover."""


class StepErrors(Record):
    """The errors of a step, or of the whole run when `step` is None."""

    step: int | None
    errors: AnswerErrors | None
    reason: str | None = None
    """Why `errors` is None."""


def indicators(*, gold_in_document: bool, answer_in_document: bool, correct: bool) -> AnswerErrors:
    """The errors that follow from the three observations."""
    residual: Residual | None = None
    if correct and gold_in_document != answer_in_document:
        residual = (
            "right, in no document" if gold_in_document else "right, in a document without gold"
        )
    return AnswerErrors(
        retriever=not gold_in_document,
        hallucination=not answer_in_document,
        extraction=gold_in_document and answer_in_document and not correct,
        lucky_guess=not gold_in_document and not answer_in_document and correct,
        correct=correct,
        residual=residual,
    )


def of_answer(
    passages: Iterable[Passage],
    golds: Sequence[str],
    answer: str,
    *,
    correct: bool,
    normaliser: Normaliser = "squad",
) -> AnswerErrors:
    """The errors of an answer that was written from these passages."""
    texts = [text for passage in passages for text in (passage.title, passage.text)]
    return indicators(
        gold_in_document=any(contains(t, gold, normaliser) for gold in golds for t in texts),
        answer_in_document=any(contains(text, answer, normaliser) for text in texts),
        correct=correct,
    )


def of_run(
    run: Run, verdict: Measurement, *, threshold: float = 0.8, normaliser: Normaliser = "squad"
) -> list[StepErrors]:
    """The errors of the whole run, then of each step: between the passages that the step showed
    and the final answer.

    Args:
        verdict: the answer's score by any metric; it is right from `threshold` on.
    """
    places = [None, *(step.index for step in run.steps)]
    if verdict.value is None or run.answer is None:
        reason = verdict.reason or "there is no answer"
        return [StepErrors(step=place, errors=None, reason=reason) for place in places]
    known, golds, answer = passages_by_key(run), run.question.answers, run.answer
    correct = verdict.value >= threshold

    def look(passages: Iterable[Passage]) -> AnswerErrors:
        return of_answer(passages, golds, answer, correct=correct, normaliser=normaliser)

    located = [StepErrors(step=None, errors=look(shown_passages(run).values()))]
    for step in run.steps:
        if asked_a_model(step):
            errors = look(known[key] for key in step.shown if key in known)
            located.append(StepErrors(step=step.index, errors=errors))
        else:
            reason = "the step asked no model"
            located.append(StepErrors(step=step.index, errors=None, reason=reason))
    return located


def brief(answer: str, *, max_words: int = MAX_WORDS) -> bool:
    """Whether an answer is short enough to occur in documents."""
    return len(answer.split()) <= max_words


def profile(errors: Sequence[AnswerErrors]) -> dict[str, Measurement]:
    """The share of each error, over all and under the condition it is defined on, with
    intervals."""
    right_document = [e for e in errors if not e.retriever]
    wrong_document = [e for e in errors if e.retriever]
    groups: Mapping[str, tuple[Sequence[bool], str]] = {
        "failure": ([not e.correct for e in errors], ""),
        "retriever": ([e.retriever for e in errors], ""),
        "hallucination": ([e.hallucination for e in errors], ""),
        "extraction": ([e.extraction for e in errors], ""),
        "lucky_guess": ([e.lucky_guess for e in errors], ""),
        "residual": ([e.residual is not None for e in errors], ""),
        "hallucination_given_gold": ([e.hallucination for e in right_document], "gold shown"),
        "extraction_given_gold": ([e.extraction for e in right_document], "gold shown"),
        "lucky_guess_given_neither": (
            [e.lucky_guess for e in wrong_document if e.hallucination],
            "neither gold nor answer shown",
        ),
    }
    return {
        name: share(
            sum(hits),
            len(hits),
            estimator=f"share({given or 'all'}, interval=clopper-pearson)",
            missing=f"no answer with {given}" if given else "no answer to look at",
        )
        for name, (hits, given) in groups.items()
    }
