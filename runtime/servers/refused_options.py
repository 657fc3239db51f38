"""The options of a request that a server refuses, learned from its errors.

Servers word their refusals in many ways, so the cause is found by trial: of the options that the
error names, one is left out; if the server then answers, that option was the cause, and no later
request has it. Options that only state what most servers do by default are tried first.

Sources: OpenAI's errors (`param`, `code`: unsupported_parameter, unsupported_value); wordings of
Azure, Anthropic, Mistral, Gemini, DeepSeek and Together in the issues of programs that call them.
"""

import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hopscope.runtime.errors import UsageError
from hopscope.runtime.servers.endpoint import RefusedRequestError

_log = logging.getLogger(__name__)

STATUSES = frozenset({400, 403, 422, 501})
"""Statuses of refusals that an option may cause; OpenAI sends 403 to some clients for logprobs."""
LENGTHS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""Two names of one option. It is never left out: a reply without a limit can cost anything."""
NEUTRAL = ("top_p", "top_k", "min_p", "repetition_penalty", "repeat_penalty")
"""Options that are sent with the value that turns them off."""
OPTIONS = (
    *(*NEUTRAL, "reasoning_effort", "seed", "stop", "n"),
    *("top_logprobs", "logprobs", "temperature"),
)
"""Options that can be left out."""
PREFIX = "prefix"
"""The option of sending the beginning of the answer as the last message, the assistant's."""
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
    """The only temperature that it refuses; for log-probabilities the most alternatives it allows.
    """


def given(text: str) -> tuple[Term, ...]:
    """Parse the options that a user leaves out: names with `+` between them.

    Raises:
        UsageError: an option cannot be left out.
    """
    names = [name for name in text.split("+") if name]
    known = (*OPTIONS, PREFIX)
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"openai: omit={unknown[0]}: choose from {', '.join(known)}")
    return tuple(Term(name) for name in names)


class Terms:
    """The refused options of one server. Threads share it."""

    def __init__(self, name: str, known: Iterable[Term] = ()) -> None:
        self._name = name
        self._known = tuple(known)
        self._lock = threading.Lock()

    def ask(
        self, post: Callable[[dict[str, Any]], Any], body: Mapping[str, Any]
    ) -> tuple[Any, tuple[str, ...]]:
        """The answer, and the options of `body` that had no effect because the server refuses them.

        Raises:
            RefusedRequestError: it refuses for another reason; the error is that of the first try.
        """
        known = self._known  # a copy: results of other threads must not look like ours
        tried: list[Term] = []
        cleared: list[Term] = []
        complaint: frozenset[str] | None = None
        first: RefusedRequestError | None = None
        together = False
        while True:
            terms = [*known, *tried]
            try:
                answer = post(fitted(body, terms))
            except RefusedRequestError as error:
                first = first or error
                if error.status not in STATUSES or together:
                    raise first from None
                now = _named(error)
                if now == complaint:  # this option was not the cause
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

    def _learn(self, terms: Sequence[Term]) -> None:
        with self._lock:
            new = [term for term in terms if term not in self._known]
            self._known = (*self._known, *new)
        if new:
            names = "; ".join(map(_told, new))
            _log.warning("%s refuses a part of the request: %s", self._name, names)


def fitted(body: Mapping[str, Any], terms: Iterable[Term]) -> dict[str, Any]:
    """The request without its refused options."""
    request = dict(body)
    for option, value in terms:
        if option in LENGTHS and option in request:
            request[LENGTHS[option]] = request.pop(option)
        elif option == PREFIX:
            request |= _without_prefix(request)
        elif option == "temperature":
            if value is None or request.get(option) == value:
                request.pop(option, None)
        elif value is not None:
            if isinstance(request.get(option), int) and request[option] is not True:
                request[option] = min(request[option], int(value))
        else:
            request.pop(option, None)
            if option == "logprobs":
                request.pop("top_logprobs", None)
    return request


def _without_prefix(body: Mapping[str, Any]) -> dict[str, Any]:
    """The beginning of the answer moved into the user's message, at its end."""
    messages = body.get("messages", [])
    if len(messages) < 2 or messages[-1]["role"] != "assistant":
        return {}
    *before, asked, begun = messages
    told = f"{asked['content']}\n\n{CONTINUE}{begun['content']}"
    return {"messages": [*before, {**asked, "content": told}]}


def _lost(body: Mapping[str, Any], terms: Iterable[Term]) -> tuple[str, ...]:
    """The options of the request that had no effect. A limit of tokens under its other name has an
    effect; stop strings and the number of samples are enforced here."""
    held = {"stop", "n", *LENGTHS}
    options = {
        term.option
        for term in terms
        if term.option not in held and fitted(body, [term]) != dict(body)
    }
    return tuple(sorted(options))


def _suspects(error: RefusedRequestError, sent: Mapping[str, Any]) -> list[Term]:
    """The options that may have caused the error, likeliest first."""
    places = {name: match.start() for name in _WORDS if (match := _WORDS[name].search(error.said))}
    named = sorted(places, key=places.__getitem__)
    neutral = [name for name in named if name in NEUTRAL]
    names = dict.fromkeys([error.param, *neutral, *named])
    there = {name for name in names if name in sent}
    if sent.get("messages", [{}])[-1].get("role") == "assistant":
        there.add(PREFIX)
    return [term for name in names if name in there for term in _ways(name, error, sent)]


def _named(error: RefusedRequestError) -> frozenset[str]:
    """The options that the error names; errors that name the same options count as equal."""
    return frozenset({error.param, *(name for name in _WORDS if _WORDS[name].search(error.said))})


def _ways(name: str, error: RefusedRequestError, sent: Mapping[str, Any]) -> list[Term]:
    """The ways to avoid an option: first with a smaller value, if the error names one."""
    if name == "temperature":
        return [Term(name, sent[name])]
    if name in LENGTHS and not _UNKNOWN.search(f"{error.code} {error.said}"):
        return []  # the value is too small or too large; the other name would not help
    if name not in (*OPTIONS, *LENGTHS, PREFIX):
        return []
    count = sent.get(name)
    if name in ("top_logprobs", "logprobs") and type(count) is int and count > 0:
        numbers = [int(digits) for digits in re.findall(r"(?<![\w.-])\d{1,6}(?![\w-])", error.said)]
        limits = [number for number in numbers if number < count]
        return [*([Term(name, max(limits))] if limits else []), Term(name)]
    return [Term(name)]


def _told(term: Term) -> str:
    """A term and its effect, for the user."""
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
    PREFIX: ", so the beginning of an answer is part of the question",
}
