"""A language model as an entailment: any reader decides whether two answers say the same.

The reader gives one greedy reply for each pair. "same" is entailment, "different" contradiction;
"unclear" and any other reply are neutral, so a model that ignores the instruction credits nothing.
Probabilities are 0 or 1, because readers behind an interface need not report any. Answers that are
equal word for word need no reply.
"""

import re
from collections.abc import Sequence

from hopscope.runtime.errors import EntailmentError, ReaderError
from hopscope.runtime.ports import Entailment, Probabilities, Reader, Statement
from hopscope.runtime.texts.answers import normalise
from hopscope.runtime.types import GenerationRequest, Message, Prompt
from hopscope.tracing.wrappers.cached import CachedEntailment

MAX_TOKENS = 8
INSTRUCTION = (
    "You compare two answers to one question. Reply with one word. Same: whoever gives the first "
    "answer has thereby given the second, in other words or with further details that do not "
    "change it. Different: the first answer names something else, denies the second, or leaves "
    "out what the question asks for. Unclear: the first answer does not commit itself."
)
_WORD = re.compile(r"[a-z]+")
_RELATIONS = {
    "same": Probabilities(1.0, 0.0, 0.0),
    "unclear": Probabilities(0.0, 1.0, 0.0),
    "different": Probabilities(0.0, 0.0, 1.0),
}


class Judge:
    """Asks a reader about each pair."""

    def __init__(self, reader: Reader) -> None:
        self.name = f"judge:{reader.name}"
        self._reader = reader

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement, in order.

        Raises:
            EntailmentError: the reader failed.
        """
        asked = [s for s in dict.fromkeys(statements) if not _same(s)]
        requests = [GenerationRequest(prompt=prompt(s), max_tokens=MAX_TOKENS) for s in asked]
        try:
            replies = self._reader.generate(requests) if requests else []
        except ReaderError as error:
            raise EntailmentError(f"{self.name}: {error}") from error
        for reason in (texts[0].unanswered for texts in replies):
            if reason:
                raise EntailmentError(f"{self.name}: {reason}")
        found = {s: relation(texts[0].text) for s, texts in zip(asked, replies, strict=True)}
        return [found.get(statement, _RELATIONS["same"]) for statement in statements]


def build(*, reader: Reader) -> Entailment:
    """A judge that compares each pair once.

    Args:
        reader: the language model that compares.
    """
    return CachedEntailment(Judge(reader))


def prompt(statement: Statement) -> Prompt:
    """The prompt that asks the reader to compare the two answers."""
    lines = (
        f"Question: {statement.question.strip() or '(not known)'}",
        f"First answer: {statement.premise.strip() or '(empty)'}",
        f"Second answer: {statement.hypothesis.strip() or '(empty)'}",
        "Same, different or unclear?",
    )
    system = Message(role="system", content=INSTRUCTION)
    return Prompt(messages=(system, Message(role="user", content="\n".join(lines))))


def relation(reply: str) -> Probabilities:
    """The verdict of a reply: the first of the three words in it."""
    words = _WORD.findall(reply.casefold())
    return next((_RELATIONS[word] for word in words if word in _RELATIONS), _RELATIONS["unclear"])


def _same(statement: Statement) -> bool:
    said = normalise(statement.premise)
    return bool(said) and said == normalise(statement.hypothesis)
