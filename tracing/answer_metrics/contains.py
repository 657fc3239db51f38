"""Containment: 1 if a gold stands in the answer as whole words after normalisation, else 0.

"Parisian" does not contain "Paris". Long answers are favoured: they mention more.

Source: word-boundary matching as in EoR (Li et al. 2024, arXiv 2405.20680), but a gold that
normalises to nothing is contained in nothing.
"""

from hopscope.runtime.texts.answers import Normaliser, contains
from hopscope.tracing.scoring.metric import AnswerMetric, StringMetric


def build(*, normaliser: Normaliser = "squad") -> AnswerMetric:
    return StringMetric(
        "contains",
        lambda answer, gold: float(contains(answer, gold, normaliser)),
        estimator=f"contains(words, normaliser={normaliser}, golds=max)",
        binary=True,
        normaliser=normaliser,
    )
