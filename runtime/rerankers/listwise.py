"""RankGPT: a reader writes the order of the candidates, window by window from the tail.

The windows and the dialogue are those of the workflow `rankgpt`, except that windows which do not
fit the reader are halved until they do. Scores are 1, 1/2, 1/3, ... by place.

Source: Sun, Yan, Ma, Wang, Ren, Chen, Yin, Ren: Is ChatGPT Good at Search? Investigating Large
Language Models as Re-Ranking Agents, EMNLP 2023 (arXiv 2304.09542).
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from hopscope.runtime.errors import ContextOverflowError
from hopscope.runtime.judgments.order import by_place
from hopscope.runtime.judgments.ranking import rank, windows
from hopscope.runtime.ports import Prompts, Reader
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.stages import Candidates, Reranking


@dataclass(frozen=True)
class Listwise:
    """See the module."""

    _: KW_ONLY
    reader: Reader
    window: int = 20
    """Candidates that are ranked in one reply."""
    stride: int = 10
    """Distance between the beginnings of consecutive windows."""
    seed: int = 0
    prompts: Prompts = DEFAULT_PROMPTS

    def __post_init__(self) -> None:
        """Raises UsageError for windows that leave gaps or never move."""
        windows(1, self.window, self.stride)

    @property
    def name(self) -> str:
        return f"listwise(window={self.window},stride={self.stride})"

    def rerank(self, asked: Sequence[Candidates]) -> list[Reranking]:
        """See the protocol; `ok` tells whether each reply named a passage.

        Raises:
            ReaderError: the reader failed, or not even two candidates fit it.
        """
        return [self._rank(candidates, self.window, self.stride) for candidates in asked]

    def _rank(self, candidates: Candidates, window: int, stride: int) -> Reranking:
        listed, readable = candidates.passages, True
        try:
            for here in windows(len(listed), window, stride):
                ranked, ok = rank(self, candidates.query, listed[here], "relevance")
                listed = (*listed[: here.start], *ranked, *listed[here.stop :])
                readable = readable and ok is not False
        except ContextOverflowError:
            if min(window, len(listed)) <= 2:
                raise
            return self._rank(candidates, max(2, window // 2), max(1, stride // 2))
        return Reranking(by_place(listed), ok=readable if listed else None)


build = Listwise
