"""Exact match: 1 if the answer equals a gold after normalisation, else 0.

Source: SQuAD (Rajpurkar, Zhang, Lopyrev, Liang 2016, arXiv 1606.05250).
"""

from hopscope.runtime.texts.answers import Normaliser
from hopscope.tracing.scoring.metric import AnswerMetric, StringMetric

HEADING = "EM"


def build(*, normaliser: Normaliser = "squad") -> AnswerMetric:
    return StringMetric(
        "exact_match",
        lambda answer, gold: float(bool(answer) and answer == gold),
        estimator=f"exact-match(normaliser={normaliser}, golds=max)",
        binary=True,
        normaliser=normaliser,
        normalised=True,
    )
