"""What can be known without gold about a run before its next retrieval.

Everything comes from the run's record but one draft of the short answer (see `tracing.draft`),
which is the whole cost. A signal that a reader or a retriever cannot give is left out, and who
learns from signals does with those there are. KeyEntropy proper is not among them: its second pass
over the answer would double that cost; the entropies of the draft are.
"""

from collections.abc import Sequence
from math import exp

from hopscope.runtime.answers import contains
from hopscope.runtime.ports import Moment, Reader
from hopscope.runtime.types import Generation
from hopscope.tracing.draft import before_last, draft, last_search, same

NAMES = (
    "retrievals",
    "tokens",
    "question_words",
    "nesting",
    "draft_words",
    "draft_found",
    "entropy",
    "max_entropy",
    "logprob",
    "least_prob",
    "margin",
    "entropy_change",
    "least_prob_change",
    "repeats",
    "thought_logprob",
    "thought_least_prob",
    "top_score",
    "score_gap",
    "new_share",
    "evidence",
)


def signals(moment: Moment, reader: Reader) -> dict[str, float]:
    """The signals by name, those of `NAMES` that there are.

    Raises:
        ReaderError: the model failed.
    """
    words = moment.question.text.split()
    now = draft(moment, reader)
    texts = " ".join(f"{p.title} {p.text}" for p in moment.evidence)
    found: dict[str, float] = {
        "retrievals": moment.retrievals,
        "tokens": sum(step.usage.tokens for step in moment.steps) / 1000,
        "question_words": len(words),
        "nesting": sum(w.lower() in ("of", "that", "who", "whose", "which") for w in words)
        + moment.question.text.count("'s "),
        "draft_words": len(now.text.split()),
        "draft_found": float(contains(texts, now.text)),
        "evidence": len(moment.evidence),
    }
    sure = _sureness(now)
    found |= sure
    earlier = before_last(moment)
    if earlier is not None:
        then = draft(moment, reader, earlier)
        found["repeats"] = float(same(now, then))
        before = _sureness(then)
        for name in ("entropy", "least_prob"):
            if name in sure and name in before:
                found[f"{name}_change"] = sure[name] - before[name]
    return found | _thought(moment) | _search(moment)


def _sureness(found: Generation) -> dict[str, float]:
    """How sure the reader was of its tokens."""
    told: dict[str, float] = {}
    if found.entropies:
        told["entropy"] = sum(found.entropies) / len(found.entropies)
        told["max_entropy"] = max(found.entropies)
    logprobs: Sequence[float] = found.logprobs
    if not logprobs and found.end_logprob is not None:
        logprobs = (found.end_logprob,)
    if logprobs:
        told["logprob"] = sum(logprobs) / len(logprobs)
        told["least_prob"] = exp(min(logprobs))
        told["margin"] = sum(max(0.0, 2 * exp(each) - 1) for each in logprobs) / len(logprobs)
    return told


def _thought(moment: Moment) -> dict[str, float]:
    """How sure the reader was of what it wrote last in the workflow itself."""
    written = [
        exchange.generations[0]
        for step in moment.steps
        if step.kind == "generate"
        for exchange in step.exchanges
    ]
    told = _sureness(written[-1]) if written else {}
    kept = {"logprob", "least_prob"}
    return {f"thought_{name}": value for name, value in told.items() if name in kept}


def _search(moment: Moment) -> dict[str, float]:
    """What the last search brought."""
    last = last_search(moment)
    if last is None or not last.ranked:
        return {}
    scores = [hit.score for hit in last.ranked]
    told = {"top_score": scores[0], "new_share": len(last.new) / len(scores)}
    if len(scores) > 1:
        told["score_gap"] = scores[0] - scores[1]
    return told
