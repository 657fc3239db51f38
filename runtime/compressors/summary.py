"""EoR's @CP: the reader summarises all candidates for the question, in at most 200 words.

The summary stands in their place as one passage. Tokens before are those of the prompt that shows
the candidates, its instructions included; tokens after are those of the reader's reply.

Source: Li, Li, Chen, Xuan, Zhang 2024 (arXiv 2405.20680), section 2.1; the words of the prompt are
ours.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from hopscope.runtime import fitting
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Reader
from hopscope.runtime.prompts import system
from hopscope.runtime.stages import Candidates, Compressed
from hopscope.runtime.types import GenerationRequest, Hit, Message, Passage, Prompt, digest

TASK = (
    "Do not answer the question. Summarise the documents truthfully in at most {words} words, "
    "above all what matters for the answer."
)
WORDS = 200
TOKENS_PER_WORD = 1.5
SOURCE = "summary"


def request(question: str, shown: Sequence[Passage], seed: int, words: int) -> GenerationRequest:
    """Ask for a summary of the documents."""
    content = f"Question: {question}\n{TASK.format(words=words)}"
    prompt = Prompt(
        messages=(system(shown), Message(role="user", content=content)),
        shown=tuple(passage.key for passage in shown),
    )
    return GenerationRequest(prompt=prompt, max_tokens=int(words * TOKENS_PER_WORD), seed=seed)


def cut(summary: str, words: int) -> str:
    """Its first words: more would be no compression."""
    return " ".join(summary.split()[:words])


def as_passage(summary: str, id: str = "") -> Passage:
    """A summary in the place of the passages it was made of."""
    return Passage(id=id, title="Summary", text=summary, source=SOURCE)


class _NothingFits(Exception):
    """The first passage alone is too long for the reader."""


@dataclass(frozen=True)
class Summary:
    """See the module."""

    _: KW_ONLY
    reader: Reader
    words: int = WORDS
    """At most."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises UsageError for a summary of no words."""
        if self.words < 1:
            raise UsageError(f"summary: words={self.words}: ask for one word or more")

    @property
    def name(self) -> str:
        return f"summary(words={self.words})"

    def compress(self, asked: Sequence[Candidates]) -> list[Compressed]:
        """As the protocol says; what does not fit the reader is left out from the end. An empty
        summary leaves nothing, nor do passages of which not even the first one fits.

        Raises:
            ReaderError: the reader failed.
        """
        return [self._summarise(candidates) for candidates in asked]

    def _summarise(self, candidates: Candidates) -> Compressed:
        def ask(shown: Sequence[Passage]) -> GenerationRequest:
            if not shown:  # of no documents a reader makes up a summary
                raise _NothingFits
            return request(candidates.query, shown, seed=self.seed, words=self.words)

        try:
            reply = fitting.generate(self, candidates.passages, ask)
        except _NothingFits:
            return Compressed((), 0, 0)
        text = cut(reply.text, self.words)
        keys = (passage.key for passage in candidates.passages)
        made = as_passage(text, f"{SOURCE}-{digest(candidates.query, *keys, text)[:16]}")
        hits = (Hit(passage=made, score=1.0),) if text else ()
        return Compressed(hits, reply.usage.input_tokens, reply.usage.output_tokens)


build = Summary
