"""BERTScore-F1: similarity of answer and gold by an encoder, token by token.

Zhang, Kishore, Wu, Weinberger, Artzi: BERTScore: Evaluating Text Generation with BERT, ICLR 2020
(arXiv 1904.09675). Neither rescaled nor weighted by idf; values depend on encoder and layer, which
the estimator names.
"""

from hopscope.runtime.similarities import bertscore
from hopscope.tracing.scoring.metric import AnswerMetric, StringMetric


def build(*, model: str, layer: int = -1) -> AnswerMetric:
    """
    Raises:
        UsageError: the encoder does not exist, cannot be loaded, or has no such layer.
    """
    similarity = bertscore.build(model=model, layer=layer)
    return StringMetric(
        "bertscore",
        lambda answer, gold: similarity.compare([answer, gold])[0][1],
        estimator=f"{similarity.name}(f1, normaliser=none, golds=max)",
    )
