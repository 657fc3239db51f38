"""How short an answer is: 1 for one word, 1/2 for two."""

from hopscope.tracing.scoring.metric import AnswerMetric, StringMetric


def build(*, words: int = 1) -> AnswerMetric:
    return StringMetric(
        f"brevity:{words}",
        lambda answer, gold: min(1.0, words / len(answer.split())),
        estimator=f"brevity(words={words})",
    )
