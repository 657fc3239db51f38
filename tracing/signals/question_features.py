"""What the texts before the first retrieval tell about a question, as numbers by name.

In levels: the question itself; the reader's closed-book draft of the answer; the reasoning that it
wrote before the draft. No model is needed. A level holds the features of those before it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from hopscope.runtime.texts.answers import normalise

Level = Literal["question", "draft", "reasoning"]
LEVELS: tuple[Level, ...] = ("question", "draft", "reasoning")

_WORD = re.compile(r"\w+")
_YEAR = re.compile(r"\b(?:1\d{3}|20\d\d)\b")
_MONTH = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december)"
    r"\b",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"(?:[A-Z][\w'\u2019.-]*|\d[\w-]*)"
    r"(?:\s+(?:(?:of|the|de|la|von|van|and|in|&)\s+)?(?:[A-Z][\w'\u2019.-]*|\d[\w-]*))*"
)
_HEDGE = re.compile(
    r"\b(?:unknown|unclear|cannot|can't|unable|none|n/a|no information|there is no|i don't|"
    r"does not|doesn't|did not|"
    r"not (?:\w+ )?(?:known|clear|specified|sure|enough|provided|mentioned|possible|found))\b",
    re.IGNORECASE,
)
_OPENING = (
    "who", "what", "when", "where", "which", "how", "why", "whose", "is", "are", "was", "were",
    "did", "do", "does", "in", "the", "name",
)  # fmt: skip
_TOPICS: Mapping[str, str] = {
    "person": "who|whose|whom|actor|director|singer|author|writer|performer|composer|president",
    "place": "where|city|country|state|county|located|birthplace|capital|region|town",
    "time": "when|year|date|century|day|month",
    "film": "film|movie|episode|series|show",
    "music": "song|album|band|singer|sang|sings",
    "comparison": "older|younger|first|earlier|later|more|longer|larger|bigger|most|higher|same|"
    "both|also",
    "kin": "mother|father|spouse|wife|husband|son|daughter|child|grand\\w+|sibling|brother|sister|"
    "in-law|uncle|aunt",
    "nation": "nationality|citizenship",
    "award": "award|prize|medal",
    "death": "die|died|death|buried|burial",
    "birth": "born|birth|birthday|birthplace",
    "work": "directed|written|wrote|produced|performed|composed|founded|published|released",
    "school": "study|studied|university|college|educated|school|graduate",
    "fiction": "fiction\\w*|character\\w*|novel\\w*|book\\w*",
}
_TOPIC = {name: re.compile(rf"\b(?:{words})\b", re.I) for name, words in _TOPICS.items()}
_COUNT = re.compile(r"\bhow (?:many|much|long|far|old|large|big|tall|often)\b", re.I)
_NUMBER = re.compile(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b", re.I)
_YES_NO = re.compile(r"(?:is|are|was|were|did|do|does|has|have|can)\b", re.I)
_CLAUSE = re.compile(r"\b(?:that|which|who|whose|where)\b", re.I)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
CONCLUSION = "So the answer is"
"""What separates the reasoning from the answer that it ends with."""


def levels(draft: str | None, reasoning: str | None) -> tuple[Level, ...]:
    """The levels whose texts are there."""
    if draft is None:
        return LEVELS[:1]
    return LEVELS if reasoning else LEVELS[:2]


def features(question: str, draft: str | None, reasoning: str | None) -> dict[str, float]:
    """The features of all levels whose texts are there."""
    found = _question(question)
    if draft is not None:
        found |= _draft(question, draft)
        if reasoning:
            found |= _reasoning(question, draft, reasoning)
    return found


def words(text: str) -> list[str]:
    """In lower case."""
    return _WORD.findall(text.lower())


def _question(text: str) -> dict[str, float]:
    seen = words(text)
    names = _names(text)
    later = text[4:]
    found = {
        "question_words": len(seen),
        "question_characters": len(text),
        "word_length": sum(map(len, seen)) / max(1, len(seen)),
        "capitals": sum(word[:1].isupper() for word in text.split()[1:]),
        "digits": sum(character.isdigit() for character in text),
        "foreign": sum(ord(character) > 127 for character in text),
        "commas": text.count(","),
        "quotes": text.count('"'),
        "question_mark": text.strip().endswith("?"),
        "lower_case": text == text.lower(),
        "names": len(names),
        "longest_name": max((len(name.split()) for name in names), default=0),
        "possessives": text.count("'s"),
        "of": seen.count("of"),
        "clauses": len(_CLAUSE.findall(later)),
        "nesting": sum(w in ("of", "that", "who", "whose", "which") for w in seen)
        + text.count("'s "),
        "or": "or" in seen,
        "and": "and" in seen,
        "year": bool(_YEAR.search(text)),
        "asks_yes_no": bool(_YES_NO.match(text)),
        "asks_count": bool(_COUNT.search(text)),
        **{f"opens_{word}": seen[:1] == [word] for word in _OPENING},
        **{f"about_{name}": bool(topic.search(text)) for name, topic in _TOPIC.items()},
    }
    return {name: float(value) for name, value in found.items()}


def _draft(question: str, draft: str) -> dict[str, float]:
    seen, asked = words(draft), set(words(question))
    plain = normalise(draft)
    dated = bool(_YEAR.search(draft) or _MONTH.search(draft))
    named = draft[:1].isupper() and 1 < len(draft.split()) < 5
    found = {
        "draft_words": len(seen),
        "draft_characters": len(draft),
        "draft_digits": sum(character.isdigit() for character in draft),
        "draft_capitals": sum(word[:1].isupper() for word in draft.split()),
        "draft_foreign": sum(ord(character) > 127 for character in draft),
        "draft_empty": not seen,
        "draft_yes_no": plain in ("yes", "no"),
        "draft_dated": dated,
        "draft_hedges": bool(_HEDGE.search(draft)),
        "draft_in_question": bool(plain) and plain in normalise(question),
        "draft_overlap": len(set(seen) & asked) / max(1, len(set(seen))),
        "fits_time": _fits(bool(_TOPIC["time"].search(question)), dated),
        "fits_person": _fits(bool(_TOPIC["person"].search(question)), named),
        "fits_count": _fits(bool(_COUNT.search(question)), bool(_NUMBER.search(draft))),
    }
    return {name: float(value) for name, value in found.items()}


def _reasoning(question: str, draft: str, reasoning: str) -> dict[str, float]:
    body, _, ending = reasoning.partition(CONCLUSION)
    seen, asked = words(body), set(words(question))
    plain, whole, target = normalise(body), normalise(question), normalise(draft)
    names = _names(question)
    told = sum(normalise(name) in plain for name in names)
    others = {normalise(name) for name in _names(body)} - {""}
    new = {name for name in others if name not in whole}
    sentences = _SENTENCE.split(body.strip(' A:"'))
    found = {
        "reasoning_words": len(seen),
        "reasoning_characters": len(reasoning),
        "reasoning_per_question": len(body) / max(1, len(question)),
        "sentences": len(sentences),
        "first_sentence": len(sentences[0].split()),
        "last_sentence": len(sentences[-1].split()),
        "hedges": len(_HEDGE.findall(body)),
        "negations": len(re.findall(r"\b(?:not|no|never)\b|n't\b", body)),
        "concludes": bool(ending),
        "infers": bool(re.search(r"\b(?:thus|therefore|hence)\b", body, re.I)),
        "question_told": len(set(seen) & asked) / max(1, len(asked)),
        "question_untold": len(asked - set(seen)),
        "words_added": len(set(seen) - asked),
        "names_told": told / max(1, len(names)),
        "all_names_told": len(names) > 1 and told == len(names),
        "names_added": len(new),
        "names_repeated": sum(plain.count(name) > 1 for name in new),
        "reasoning_capitals": sum(word[:1].isupper() for word in body.split()),
        "reasoning_digits": sum(character.isdigit() for character in body),
        "reasoning_quotes": body.count('"'),
        "reasoning_foreign": sum(ord(character) > 127 for character in body),
        "years": len(_YEAR.findall(body)),
        "months": bool(_MONTH.search(body)),
        "draft_told": bool(target) and target in plain,
        "draft_times": plain.count(target) if target else 0,
        "draft_told_first": bool(target) and target in normalise(sentences[0]),
        "draft_told_last": bool(target) and plain.endswith(target),
        "draft_agrees": bool(target) and target in normalise(ending),
    }
    return {name: float(value) for name, value in found.items()}


def _names(text: str) -> Sequence[str]:
    """Spans that begin with a capital or a digit, without the opening words of questions."""
    return [name for name in _NAME.findall(text) if name.lower() not in _OPENING]


def _fits(asked: bool, given: bool) -> float:
    """1 if the draft is of the kind that is asked for, -1 if not, 0 if another is asked for."""
    return (1.0 if given else -1.0) if asked else 0.0
