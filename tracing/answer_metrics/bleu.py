"""Sentence BLEU in [0, 1], by sacrebleu, with effective n-gram order for short texts.

Papineni, Roukos, Ward, Zhu: BLEU: a Method for Automatic Evaluation of Machine Translation, ACL
2002; Post: A Call for Clarity in Reporting BLEU Scores, WMT 2018 (arXiv 1804.08771). Of several
golds the best single one counts; case and punctuation count unless `lowercase` is set.
"""

from hopscope.runtime.errors import MissingExtraError
from hopscope.tracing.scoring.metric import AnswerMetric, StringMetric


def build(*, lowercase: bool = False) -> AnswerMetric:
    """
    Raises:
        MissingExtraError: sacrebleu is not installed.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ModuleNotFoundError:
        raise MissingExtraError("BLEU", "bleu") from None
    # Without effective order an answer of fewer than four words would score near 0.
    scorer = BLEU(effective_order=True, lowercase=lowercase)

    def compare(answer: str, gold: str) -> float:
        # sacrebleu returns 100.00000000000004 for a perfect answer.
        return min(1.0, scorer.sentence_score(answer, [gold]).score / 100)

    compare("", "-")  # sacrebleu knows the signature after its first score
    estimator = f"bleu(sacrebleu {scorer.get_signature()}, golds=max)"
    return StringMetric("bleu", compare, estimator=estimator)
