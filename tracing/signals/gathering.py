"""Signals about a run before its next retrieval, without gold, in stages of rising cost.

`free` signals are in the run's record. `draft` needs one draft of the short answer (see
`tracing.signals.draft`). `change` compares it with the draft from the evidence before the last
retrieval, and computes GroGU's KeyEntropy of both, which scores each under the closed-book prompt.
A policy can stop at any stage. A signal that a reader or a retriever cannot give is left out;
fitting uses the signals that are there.
"""

from collections.abc import Callable, Mapping, Sequence
from math import exp
from typing import Literal

from hopscope.runtime.ports import Moment, Reader
from hopscope.runtime.texts.answers import contains, normalise
from hopscope.runtime.types import Generation, Usage
from hopscope.tracing.meters.grogu.key_entropy import key_entropy
from hopscope.tracing.signals.draft import before_last, draft, last_search, request, same
from hopscope.tracing.wrappers.cached import CachedReader

Stage = Literal["free", "draft", "change"]

SIGNALS: Mapping[Stage, tuple[str, ...]] = {
    "free": (
        "retrievals",
        "tokens",
        "question_words",
        "nesting",
        "evidence",
        "top_score",
        "score_gap",
        "new_share",
        "thought_words",
        "thought_repeats",
        "thought_logprob",
        "thought_least_prob",
    ),
    "draft": (
        "draft_words",
        "draft_found",
        "draft_in_thought",
        "entropy",
        "max_entropy",
        "logprob",
        "least_prob",
        "margin",
    ),
    "change": (
        "repeats",
        "entropy_change",
        "least_prob_change",
        "key_entropy",
        "key_entropy_change",
    ),
}
"""The signals of each stage, the cheapest stage first."""
STAGES: tuple[Stage, ...] = tuple(SIGNALS)
NAMES = tuple(name for names in SIGNALS.values() for name in names)


def signals(moment: Moment, reader: Reader) -> dict[str, float]:
    """All available signals of `NAMES`, by name.

    Raises:
        ReaderError: the model failed.
    """
    remembering = CachedReader(reader)  # the draft is needed by two stages
    values: dict[str, float] = {}
    for stage in STAGES:
        values |= gather(stage, moment, remembering)
    return values


def gather(stage: Stage, moment: Moment, reader: Reader) -> dict[str, float]:
    """The signals of one stage.

    Raises:
        ReaderError: the model failed.
    """
    take: Mapping[Stage, Callable[[Moment, Reader], dict[str, float]]] = {
        "free": lambda moment, _: _question(moment) | _search(moment) | _thought(moment),
        "draft": _draft,
        "change": _change,
    }
    return take[stage](moment, reader)


def _question(moment: Moment) -> dict[str, float]:
    """Signals of the question and of the run so far."""
    words = moment.question.text.split()
    usage = sum((step.usage for step in moment.steps), Usage())
    return {
        "retrievals": moment.retrievals,
        **({} if usage.uncounted else {"tokens": usage.tokens / 1000}),
        "question_words": len(words),
        "nesting": sum(w.lower() in ("of", "that", "who", "whose", "which") for w in words)
        + moment.question.text.count("'s "),
        "evidence": len(moment.evidence),
    }


def _search(moment: Moment) -> dict[str, float]:
    """Signals of the last search."""
    last = last_search(moment)
    if last is None or not last.ranked:
        return {}
    scores = [hit.score for hit in last.ranked]
    values = {"top_score": scores[0], "new_share": len(last.new) / len(scores)}
    if len(scores) > 1:
        values["score_gap"] = scores[0] - scores[1]
    return values


def _thought(moment: Moment) -> dict[str, float]:
    """Signals of the reader's last text in the workflow, and its confidence in it."""
    written = _written(moment)
    if not written:
        return {}
    last = normalise(written[-1].text)
    confidence = confidence_of(written[-1])
    return {
        "thought_words": len(last.split()),
        "thought_repeats": float(any(normalise(each.text) == last for each in written[:-1])),
        **{
            f"thought_{name}": confidence[name]
            for name in ("logprob", "least_prob")
            if name in confidence
        },
    }


def _written(moment: Moment) -> list[Generation]:
    return [
        exchange.generations[0]
        for step in moment.steps
        if step.kind == "generate"
        for exchange in step.exchanges
    ]


def _draft(moment: Moment, reader: Reader) -> dict[str, float]:
    """Signals of the present draft."""
    now = draft(moment, reader)
    texts = " ".join(f"{p.title} {p.text}" for p in moment.evidence)
    values: dict[str, float] = {
        "draft_words": len(now.text.split()),
        "draft_found": float(contains(texts, now.text)),
    }
    if written := _written(moment):
        values["draft_in_thought"] = float(contains(written[-1].text, now.text))
    return values | confidence_of(now)


def _change(moment: Moment, reader: Reader) -> dict[str, float]:
    """The draft's changes by the last retrieval."""
    now = draft(moment, reader)
    closed_book = request(moment, ()).prompt
    key = key_entropy(closed_book, now, reader, grounded=bool(moment.evidence))
    values: dict[str, float] = {} if key is None else {"key_entropy": key}
    earlier = before_last(moment)
    if earlier is None:
        return values
    then = draft(moment, reader, earlier)
    values["repeats"] = float(same(now, then))
    after, before = confidence_of(now), confidence_of(then)
    for name in ("entropy", "least_prob"):
        if name in after and name in before:
            values[f"{name}_change"] = after[name] - before[name]
    key_then = key_entropy(closed_book, then, reader, grounded=bool(earlier))
    if key is not None and key_then is not None:
        values["key_entropy_change"] = key - key_then
    return values


def confidence_of(text: Generation) -> dict[str, float]:
    """The reader's confidence in the tokens of its text; of an empty text in its end."""
    logprobs: Sequence[float] = text.logprobs
    if not logprobs and text.end_logprob is not None:
        logprobs = (text.end_logprob,)
    return confidence(logprobs, text.entropies)


def confidence(logprobs: Sequence[float], entropies: Sequence[float]) -> dict[str, float]:
    """What log-probabilities and entropies of tokens, in nats, say; nothing without them."""
    values: dict[str, float] = {}
    if entropies:
        values["entropy"] = sum(entropies) / len(entropies)
        values["max_entropy"] = max(entropies)
    if logprobs:
        values["logprob"] = sum(logprobs) / len(logprobs)
        values["least_prob"] = exp(min(logprobs))
        values["margin"] = sum(max(0.0, 2 * exp(each) - 1) for each in logprobs) / len(logprobs)
    return values
