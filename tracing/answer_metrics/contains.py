"""Containment: 1 if the answer contains a gold as whole words after normalisation, else 0.

"Parisian" does not contain "Paris". The metric favours long answers, which mention more.

Source: word-boundary matching as in EoR (Li et al. 2024, arXiv 2405.20680), except that no answer
contains a gold that normalises to nothing.
"""

from hopscope.runtime.texts.answers import Normaliser, holds
from hopscope.tracing.scoring.metric import AnswerMetric, StringMetric


def build(*, normaliser: Normaliser = "squad") -> AnswerMetric:
    return StringMetric(
        "contains",
        lambda answer, gold: float(holds(answer, gold)),
        estimator=f"contains(words, normaliser={normaliser}, golds=max)",
        binary=True,
        normaliser=normaliser,
        normalised=True,
    )
