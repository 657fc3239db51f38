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
from hopscope.runtime.prompting.loading import chosen
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS, PromptSet
from hopscope.runtime.texts.answers import normalise
from hopscope.runtime.types import GenerationRequest, Prompt
from hopscope.tracing.wrappers.cached import CachedEntailment

MAX_TOKENS = 8
PROMPT = "judge/equivalence"
_WORD = re.compile(r"[a-z]+")
_RELATIONS = {
    "same": Probabilities(1.0, 0.0, 0.0),
    "unclear": Probabilities(0.0, 1.0, 0.0),
    "different": Probabilities(0.0, 0.0, 1.0),
}


class Judge:
    """Asks a reader about each pair."""

    def __init__(self, reader: Reader, prompts: PromptSet = DEFAULT_PROMPTS) -> None:
        own = f",prompt={prompts.hash}" if prompts.differs(PROMPT) else ""
        self.name = f"judge:{reader.name}{own}"
        self._reader, self._prompts = reader, prompts

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement, in order.

        Raises:
            EntailmentError: the reader failed.
        """
        asked = [s for s in dict.fromkeys(statements) if not _same(s)]
        prompts = [prompt(each, self._prompts) for each in asked]
        requests = [GenerationRequest(prompt=each, max_tokens=MAX_TOKENS) for each in prompts]
        try:
            replies = self._reader.generate(requests) if requests else []
        except ReaderError as error:
            raise EntailmentError(f"{self.name}: {error}") from error
        for reason in (texts[0].unanswered for texts in replies):
            if reason:
                raise EntailmentError(f"{self.name}: {reason}")
        found = {s: relation(texts[0].text) for s, texts in zip(asked, replies, strict=True)}
        return [found.get(statement, _RELATIONS["same"]) for statement in statements]


def build(*, reader: Reader, prompts: str = "") -> Entailment:
    """A judge that compares each pair once.

    Args:
        reader: the language model that compares.
        prompts: a set of prompts, or its folder.
    """
    return CachedEntailment(Judge(reader, chosen(prompts)))


def prompt(statement: Statement, prompts: PromptSet = DEFAULT_PROMPTS) -> Prompt:
    """The prompt that asks the reader to compare the two answers."""
    question, answer, other = statement
    return prompts.render(PROMPT, question=question, answer=answer, other=other)


def relation(reply: str) -> Probabilities:
    """The verdict of a reply: the first of the three words in it."""
    words = _WORD.findall(reply.casefold())
    return next((_RELATIONS[word] for word in words if word in _RELATIONS), _RELATIONS["unclear"])


def _same(statement: Statement) -> bool:
    said = normalise(statement.premise)
    return bool(said) and said == normalise(statement.hypothesis)
