"""F1 of the words of answer and gold, as bags; yes, no and noanswer earn nothing unless equal.

Source: SQuAD (Rajpurkar, Zhang, Lopyrev, Liang 2016, arXiv 1606.05250); the rule for yes and no
follows FLARE (Jiang et al. 2023, arXiv 2305.06983).
"""

from hopscope.runtime.texts.answers import Normaliser, bag_f1
from hopscope.tracing.scoring.metric import AnswerMetric, StringMetric

HEADING = "F1"


def build(*, normaliser: Normaliser = "squad") -> AnswerMetric:
    return StringMetric(
        "f1",
        bag_f1,
        estimator=f"f1(normaliser={normaliser}, golds=max)",
        normaliser=normaliser,
        normalised=True,
    )
