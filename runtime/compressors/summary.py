"""EoR's @CP: the reader summarises all candidates for the question, in at most 200 words.

The summary replaces them as one passage. Tokens before are those of the prompt with the candidates,
its instructions included; tokens after are those of the reader's reply.

Source: Li, Li, Chen, Xuan, Zhang 2024 (arXiv 2405.20680), section 2.1; the words of the prompt are
ours.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Prompts, Reader
from hopscope.runtime.prompting import fitting
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.stages import Candidates, Compression
from hopscope.runtime.types import Hit, Passage, Prompt, digest

WORDS = 200
TOKENS_PER_WORD = 1.5
SOURCE = "summary"


def prompt(
    question: str,
    shown: Sequence[Passage],
    words: int = WORDS,
    *,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> Prompt:
    """Ask for a summary of the documents."""
    return prompts.render("eor/summary", shown, question=question, words=words)


def tokens(words: int = WORDS) -> int:
    """Most tokens of a summary."""
    return int(words * TOKENS_PER_WORD)


def cut(summary: str, words: int = WORDS) -> str:
    """The first words of a summary: more would be no compression."""
    return " ".join(summary.split()[:words])


def as_passage(summary: str, id: str = "") -> Passage:
    """A summary as the passage that replaces its sources."""
    return Passage(id=id, title="Summary", text=summary, source=SOURCE)


class _NothingFits(Exception):
    """The first passage alone is too long for the reader."""


@dataclass(frozen=True)
class Summary:
    """See the module."""

    _: KW_ONLY
    reader: Reader
    words: int = WORDS
    """Most words of the summary."""
    seed: int = 0
    prompts: Prompts = DEFAULT_PROMPTS

    def __post_init__(self) -> None:
        """Raises UsageError for a summary of no words."""
        if self.words < 1:
            raise UsageError(f"summary: words={self.words}: ask for one word or more")

    @property
    def name(self) -> str:
        return f"summary(words={self.words})"

    def compress(self, asked: Sequence[Candidates]) -> list[Compression]:
        """See the protocol. Passages that do not fit the reader are dropped from the end. The
        result is empty for an empty summary, or if not even the first passage fits.

        Raises:
            ReaderError: the reader failed.
        """
        return [self._summarise(candidates) for candidates in asked]

    def _summarise(self, candidates: Candidates) -> Compression:
        def some(shown: Sequence[Passage]) -> Prompt:
            if not shown:  # of no documents a reader makes up a summary
                raise _NothingFits
            return prompt(candidates.query, shown, self.words, prompts=self.prompts)

        try:
            limit = tokens(self.words)
            reply = fitting.generate(self, candidates.passages, some, max_tokens=limit)
        except _NothingFits:
            return Compression((), 0, 0)
        text = cut(reply.text, self.words)
        keys = (passage.key for passage in candidates.passages)
        made = as_passage(text, f"{SOURCE}-{digest(candidates.query, *keys, text)[:16]}")
        hits = (Hit(passage=made, score=1.0),) if text else ()
        return Compression(hits, reply.usage.input_tokens, reply.usage.output_tokens)


build = Summary
