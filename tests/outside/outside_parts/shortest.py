"""The shortest passages first."""

from collections.abc import Sequence

from hopscope.runtime.stages import Candidates, Reranker, Reranking


class Shortest:
    name = "shortest"

    def rerank(self, asked: Sequence[Candidates]) -> list[Reranking]:
        return [
            Reranking(tuple(sorted(each.hits, key=lambda hit: len(hit.passage.text))))
            for each in asked
        ]


def build() -> Reranker:
    return Shortest()
