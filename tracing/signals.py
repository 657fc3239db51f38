"""What can be known without gold about a run before its next retrieval, in the order of its price.

`free` is in the run's record. `draft` takes one draft of the short answer (see `tracing.draft`).
`change` compares it with the draft from the evidence before the last retrieval, and takes GroGU's
KeyEntropy of both, which scores each under the closed-book prompt. Who decides by signals can stop
at any stage. A signal that a reader or a retriever cannot give is left out, and who learns from
signals does with those there are.
"""

from collections.abc import Callable, Mapping, Sequence
from math import exp
from typing import Literal

from hopscope.runtime.answers import contains, normalise
from hopscope.runtime.ports import Moment, Reader
from hopscope.runtime.types import Generation, Usage
from hopscope.tracing.caching import CachedReader
from hopscope.tracing.draft import before_last, draft, last_search, same
from hopscope.tracing.key_entropy import key_entropy

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
"""By what has to be asked for them, the cheapest first."""
STAGES: tuple[Stage, ...] = tuple(SIGNALS)
NAMES = tuple(name for names in SIGNALS.values() for name in names)


def signals(moment: Moment, reader: Reader) -> dict[str, float]:
    """All signals by name, those of `NAMES` that there are.

    Raises:
        ReaderError: the model failed.
    """
    remembering = CachedReader(reader)  # the draft is needed by two stages
    found: dict[str, float] = {}
    for stage in STAGES:
        found |= gather(stage, moment, remembering)
    return found


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
    """What is asked, and what was done about it."""
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
    """What the last search brought."""
    last = last_search(moment)
    if last is None or not last.ranked:
        return {}
    scores = [hit.score for hit in last.ranked]
    told = {"top_score": scores[0], "new_share": len(last.new) / len(scores)}
    if len(scores) > 1:
        told["score_gap"] = scores[0] - scores[1]
    return told


def _thought(moment: Moment) -> dict[str, float]:
    """What the reader wrote last in the workflow itself, and how sure it was of that."""
    written = _written(moment)
    if not written:
        return {}
    last = normalise(written[-1].text)
    told = _sureness(written[-1])
    return {
        "thought_words": len(last.split()),
        "thought_repeats": float(any(normalise(each.text) == last for each in written[:-1])),
        **{f"thought_{name}": told[name] for name in ("logprob", "least_prob") if name in told},
    }


def _written(moment: Moment) -> list[Generation]:
    return [
        exchange.generations[0]
        for step in moment.steps
        if step.kind == "generate"
        for exchange in step.exchanges
    ]


def _draft(moment: Moment, reader: Reader) -> dict[str, float]:
    """The short answer of now."""
    now = draft(moment, reader)
    texts = " ".join(f"{p.title} {p.text}" for p in moment.evidence)
    found: dict[str, float] = {
        "draft_words": len(now.text.split()),
        "draft_found": float(contains(texts, now.text)),
    }
    if written := _written(moment):
        found["draft_in_thought"] = float(contains(written[-1].text, now.text))
    return found | _sureness(now)


def _change(moment: Moment, reader: Reader) -> dict[str, float]:
    """What the last retrieval did to it."""
    now = draft(moment, reader)
    key = key_entropy(moment.question, now, reader, grounded=bool(moment.evidence))
    found: dict[str, float] = {} if key is None else {"key_entropy": key}
    earlier = before_last(moment)
    if earlier is None:
        return found
    then = draft(moment, reader, earlier)
    found["repeats"] = float(same(now, then))
    sure, before = _sureness(now), _sureness(then)
    for name in ("entropy", "least_prob"):
        if name in sure and name in before:
            found[f"{name}_change"] = sure[name] - before[name]
    key_then = key_entropy(moment.question, then, reader, grounded=bool(earlier))
    if key is not None and key_then is not None:
        found["key_entropy_change"] = key - key_then
    return found


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
