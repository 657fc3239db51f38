"""ROUGE-L: F1 of the longest common subsequence of the words of answer and gold.

Source: Lin: ROUGE: A Package for Automatic Evaluation of Summaries, Text Summarization Branches
Out 2004. Words are runs of letters and digits in lower case; no stemming, articles count.
"""

from hopscope.runtime.texts import answers
from hopscope.tracing.scoring.metric import AnswerMetric, StringMetric


def build() -> AnswerMetric:
    estimator = "rouge-l(f1, normaliser=casefolded words, golds=max)"
    return StringMetric("rouge_l", answers.rouge_l, estimator=estimator)
