"""Keep the first words of each passage."""

from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.runtime.stages import Candidates, Compression, Compressor
from hopscope.runtime.types import Hit


@dataclass(frozen=True)
class FirstWords:
    words: int

    @property
    def name(self) -> str:
        return f"first_words(words={self.words})"

    def compress(self, asked: Sequence[Candidates]) -> list[Compression]:
        return [
            Compression(tuple(map(self._cut, each.hits)), _words(each.hits), 0) for each in asked
        ]

    def _cut(self, hit: Hit) -> Hit:
        text = " ".join(hit.passage.text.split()[: self.words])
        return hit.model_copy(update={"passage": hit.passage.model_copy(update={"text": text})})


def _words(hits: Sequence[Hit]) -> int:
    return sum(len(hit.passage.text.split()) for hit in hits)


def build(*, words: int = 2) -> Compressor:
    return FirstWords(words)
