"""Lexical match: 1 if a gold is a substring of the answer after normalisation, else 0.

It matches inside words, too: "Parisian" matches "Paris". `contains` respects words.

Source: the lexical match that EVOUNA compares with human judgements (Wang et al. 2023, arXiv
2305.12421); FlashRAG's `acc` (Jin et al. 2024, arXiv 2405.13576).
"""

from hopscope.runtime.texts.answers import Normaliser, accuracy
from hopscope.tracing.scoring.metric import AnswerMetric, StringMetric


def build(*, normaliser: Normaliser = "squad") -> AnswerMetric:
    return StringMetric(
        "lexical_match",
        lambda answer, gold: accuracy(answer, [gold], normaliser),
        estimator=f"lexical-match(substring, normaliser={normaliser}, golds=max)",
        binary=True,
        normaliser=normaliser,
    )
