"""Training data for a query rewriter: rewrites of a question, ranked by their evidence's utility.

Each candidate query retrieves its passages (ten, as in the paper), and a meter measures their
utility to the reader for the *original* question. The best candidate of every question is an
example for fine-tuning (SFT); best against worst is a preference (DPO), and the share with the
widest gaps is kept, half of them by default. A question whose candidates are all equal gives no
preference, only its best candidate.

The rows have the conversational form of TRL's trainers: `prompt` and `completion` for its
SFTTrainer; `prompt`, `chosen` and `rejected` for its DPOTrainer.

A question of a conversation has its history, the texts of both sides before it: the prompt shows it
above the question, the meter measures the question with it, and the rows have it in a field of its
own.

Source: GroGU (2026), section 5.1 and appendix E; candidates as in RetPO (Yoon et al. 2025).
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from hopscope.runtime.ports import Retriever, UtilityMeter
from hopscope.runtime.types import Measurement, Question, Record
from hopscope.tracing.statistics.comparisons import widest

INSTRUCTION = (
    "Rewrite the question as one search query that finds the documents needed to answer it. "
    "Write the query only."
)
SPEAKERS = ("User", "Assistant")
DEPTH = 10
"""Passages that a candidate retrieves."""


class Candidate(Record):
    """A query and the utility of its passages."""

    query: str
    utility: Measurement


class Rewrites(Record):
    """The candidates of a question."""

    question: Question
    candidates: tuple[Candidate, ...]
    history: tuple[str, ...] = ()
    """What was said before the question, by turns, the user's first."""

    @property
    def measured(self) -> list[tuple[str, float]]:
        """Queries with their utility; unmeasured ones are left out."""
        return [(c.query, c.utility.value) for c in self.candidates if c.utility.value is not None]


def appraise(
    question: Question,
    queries: Sequence[str],
    retriever: Retriever,
    meter: UtilityMeter,
    *,
    depth: int = DEPTH,
    history: Sequence[str] = (),
) -> Rewrites:
    """The utility of each query; equal queries are one candidate, blank ones are left out.

    Raises:
        RetrieverError, ReaderError, EntailmentError: an index or a model failed.
    """
    distinct = list(dict.fromkeys(" ".join(query.split()) for query in queries if query.strip()))
    if not distinct:
        return Rewrites(question=question, candidates=(), history=tuple(history))
    found = retriever.search(distinct, k=depth)
    evidences = [tuple(hit.passage for hit in hits) for hits in found]
    measured = question.model_copy(update={"text": in_conversation(question.text, history)})
    utilities = meter.measure(measured if history else question, evidences)
    return Rewrites(
        question=question,
        candidates=tuple(
            Candidate(query=query, utility=utility)
            for query, utility in zip(distinct, utilities, strict=True)
        ),
        history=tuple(history),
    )


def in_conversation(text: str, history: Sequence[str]) -> str:
    """The question below the turns before it; the question alone without any."""
    if not history:
        return text
    turns = [f"{SPEAKERS[place % 2]}: {turn}" for place, turn in enumerate(history)]
    return "\n".join(["Conversation:", *turns, "", f"Question: {text}"])


def imitations(rewritten: Sequence[Rewrites]) -> list[dict[str, Any]]:
    """Rows for supervised fine-tuning: the best candidate of each question, the earlier of equals.
    Questions without a measured candidate are left out."""
    rows = []
    for rewrites in rewritten:
        if rewrites.measured:
            query, utility = max(rewrites.measured, key=lambda pair: pair[1])
            rows.append(
                {
                    "prompt": _prompt(rewrites),
                    "completion": _reply(query),
                    "question_id": rewrites.question.id,
                    "history": list(rewrites.history),
                    "utility": utility,
                }
            )
    return rows


def preferences(
    rewritten: Sequence[Rewrites], *, share: Fraction = Fraction(1, 2)
) -> list[dict[str, Any]]:
    """Rows for direct preference optimisation: best against worst, of the ⌈share⌉ of questions with
    the widest gaps."""
    gaps = []
    for rewrites in rewritten:
        if rewrites.measured:
            best = max(rewrites.measured, key=lambda pair: pair[1])
            worst = min(rewrites.measured, key=lambda pair: pair[1])
            gaps.append(((rewrites, best, worst), best[1] - worst[1]))
    return [
        {
            "prompt": _prompt(rewrites),
            "chosen": _reply(best[0]),
            "rejected": _reply(worst[0]),
            "question_id": rewrites.question.id,
            "history": list(rewrites.history),
            "utility_chosen": best[1],
            "utility_rejected": worst[1],
        }
        for rewrites, best, worst in widest(gaps, share)
    ]


def _prompt(rewrites: Rewrites) -> list[Mapping[str, str]]:
    asked = in_conversation(rewrites.question.text, rewrites.history)
    return [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": asked}]


def _reply(query: str) -> list[Mapping[str, str]]:
    return [{"role": "assistant", "content": query}]
