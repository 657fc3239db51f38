"""On which terms a server answers: the options of a request that it refuses, learned from its
errors.

Servers word their refusals in many ways. What one is about is therefore tried out: of the options
that the error names one is left out, and if the server then answers, that was it. From then on
nothing asks with it again. Options that only spell out what most servers do anyway come first.

Sources: OpenAI's errors (`param`, `code`: unsupported_parameter, unsupported_value); wordings of
Azure, Anthropic, Mistral, Gemini, DeepSeek and Together in the issues of programs that call them.
"""

import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hopscope.runtime.errors import UsageError
from hopscope.runtime.readers._endpoint import Refused

_log = logging.getLogger(__name__)

STATUSES = frozenset({400, 403, 422, 501})
"""Of refusals that may be about an option; OpenAI answers 403 to some who ask for logprobs."""
LENGTHS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""Two names for one thing. It is never left out: a reply without a limit can cost anything."""
NEUTRAL = ("top_p", "top_k", "min_p", "repetition_penalty", "repeat_penalty")
"""Sent with the value that turns them off."""
OPTIONS = (
    *(*NEUTRAL, "reasoning_effort", "seed", "stop", "n"),
    *("top_logprobs", "logprobs", "temperature"),
)
"""What can be left out."""
PREFIX = "prefix"
"""Stands for a beginning of the answer that is sent as the last message, the assistant's."""
CONTINUE = "Your answer has begun as follows. Write only what comes after it:\n"

_SPELLED: Mapping[str, str] = {
    "n": r"['\"`]n['\"`]|\bn\s*(?:[<>=]|must|should|is|parameter|value)|multiple (?:choices|comp)"
    r"|one (?:completion )?choice",
    "logprobs": r"(?<!\w)log[ _]?prob(?:s|abilit)",
    PREFIX: r"prefill|prefix|assistant|last (?:message|role)|end with a user",
}
_WORDS = {
    name: re.compile(_SPELLED.get(name, rf"(?<!\w){name}(?!\w)"), re.IGNORECASE)
    for name in (*OPTIONS, *LENGTHS, PREFIX)
}

_UNKNOWN = re.compile(
    r"unsupported|not supported|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|extra"
    r"|deprecated|instead",
    re.IGNORECASE,
)


class Term(NamedTuple):
    """An option that a server refuses."""

    option: str
    value: float | None = None
    """The only temperature that it refuses; of log-probabilities the most alternatives it gives."""


def given(text: str) -> tuple[Term, ...]:
    """What a user wants left out: names with `+` between them.

    Raises:
        UsageError: that is no option that can be left out.
    """
    names = [name for name in text.split("+") if name]
    known = (*OPTIONS, PREFIX)
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"openai: omit={unknown[0]}: what can be left out is {', '.join(known)}")
    return tuple(Term(name) for name in names)


class Terms:
    """What is known of one server. Threads share it."""

    def __init__(self, name: str, known: Iterable[Term] = ()) -> None:
        self._name = name
        self._known = tuple(known)
        self._lock = threading.Lock()

    def ask(
        self, post: Callable[[dict[str, Any]], Any], body: Mapping[str, Any]
    ) -> tuple[Any, tuple[str, ...]]:
        """The answer, and which options of `body` did not hold because the server refuses them.

        Raises:
            Refused: it refuses for another reason; the error is that of the first try.
        """
        known = self._known  # what others learn meanwhile would be put down to a guess of ours
        tried: list[Term] = []
        cleared: list[Term] = []
        complaint: frozenset[str] | None = None
        first: Refused | None = None
        together = False
        while True:
            terms = [*known, *tried]
            try:
                answer = post(fitted(body, terms))
            except Refused as error:
                first = first or error
                if error.status not in STATUSES or together:
                    raise first from None
                now = _named(error)
                if now == complaint:  # that was not it
                    cleared.append(tried.pop())
                suspects = _suspects(error, fitted(body, [*known, *tried]))
                term = next((t for t in suspects if t not in [*cleared, *tried]), None)
                together = term is None and len(cleared) > 1
                if term is None and not together:
                    raise first from None
                tried += cleared if term is None else [term]
                complaint = now
            else:
                self._learn(tried)
                return answer, _lost(body, terms)

    def _learn(self, found: Sequence[Term]) -> None:
        with self._lock:
            new = [term for term in found if term not in self._known]
            self._known = (*self._known, *new)
        if new:
            told = "; ".join(map(_told, new))
            _log.warning("%s refuses a part of what is asked: %s", self._name, told)


def fitted(body: Mapping[str, Any], terms: Iterable[Term]) -> dict[str, Any]:
    """The request as the server takes it."""
    found = dict(body)
    for option, value in terms:
        if option in LENGTHS and option in found:
            found[LENGTHS[option]] = found.pop(option)
        elif option == PREFIX:
            found |= _without_prefix(found)
        elif option == "temperature":
            if value is None or found.get(option) == value:
                found.pop(option, None)
        elif value is not None:
            if isinstance(found.get(option), int) and found[option] is not True:
                found[option] = min(found[option], int(value))
        else:
            found.pop(option, None)
            if option == "logprobs":
                found.pop("top_logprobs", None)
    return found


def _without_prefix(body: Mapping[str, Any]) -> dict[str, Any]:
    """The beginning of the answer told in words, at the end of the user's message."""
    messages = body.get("messages", [])
    if len(messages) < 2 or messages[-1]["role"] != "assistant":
        return {}
    *before, asked, begun = messages
    told = f"{asked['content']}\n\n{CONTINUE}{begun['content']}"
    return {"messages": [*before, {**asked, "content": told}]}


def _lost(body: Mapping[str, Any], terms: Iterable[Term]) -> tuple[str, ...]:
    """The options of which the request did not get what it asked for. A limit of tokens by another
    name holds; stop strings and the number of samples are seen to here."""
    held = {"stop", "n", *LENGTHS}
    found = {
        term.option
        for term in terms
        if term.option not in held and fitted(body, [term]) != dict(body)
    }
    return tuple(sorted(found))


def _suspects(error: Refused, sent: Mapping[str, Any]) -> list[Term]:
    """What the error may be about, the likeliest first."""
    places = {name: found.start() for name in _WORDS if (found := _WORDS[name].search(error.said))}
    named = sorted(places, key=places.__getitem__)
    neutral = [name for name in named if name in NEUTRAL]
    names = dict.fromkeys([error.param, *neutral, *named])
    there = {name for name in names if name in sent}
    if sent.get("messages", [{}])[-1].get("role") == "assistant":
        there.add(PREFIX)
    return [term for name in names if name in there for term in _ways(name, error, sent)]


def _named(error: Refused) -> frozenset[str]:
    """The options that the error names: one that names the same is the same error."""
    return frozenset({error.param, *(name for name in _WORDS if _WORDS[name].search(error.said))})


def _ways(name: str, error: Refused, sent: Mapping[str, Any]) -> list[Term]:
    """How to do without an option: first by asking for less of it, if the error says how much."""
    if name == "temperature":
        return [Term(name, sent[name])]
    if name in LENGTHS and not _UNKNOWN.search(f"{error.code} {error.said}"):
        return []  # it may be too small or too large; by another name it may not be there at all
    if name not in (*OPTIONS, *LENGTHS, PREFIX):
        return []
    count = sent.get(name)
    if name in ("top_logprobs", "logprobs") and type(count) is int and count > 0:
        numbers = [int(digits) for digits in re.findall(r"(?<![\w.-])\d{1,6}(?![\w-])", error.said)]
        limits = [number for number in numbers if number < count]
        return [*([Term(name, max(limits))] if limits else []), Term(name)]
    return [Term(name)]


def _told(term: Term) -> str:
    """A term as the user reads it, with what it changes."""
    option, value = term
    if option in LENGTHS:
        return f"it takes {LENGTHS[option]} in place of {option}"
    if option == "temperature" and value == 0:
        return "temperature=0, so its replies are drawn and not greedy"
    if option == "temperature":
        return f"{option}={value:g}, so it draws by a temperature of its own"
    if value is not None:
        return f"{option} above {value:g}"
    return f"{option}{_EFFECTS.get(option, '')}"


_EFFECTS: Mapping[str, str] = {
    "seed": ", so the same run again may differ",
    "stop": ", so replies are cut here",
    "n": ", so it is asked for one sample at a time",
    "logprobs": ", so SePer needs -o seper.weight=uniform and GroGU cannot be measured",
    "top_logprobs": ", so there are no entropies",
    PREFIX: ", so the beginning of an answer is told in the question",
}
