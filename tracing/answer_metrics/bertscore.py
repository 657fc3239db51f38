"""BERTScore-F1: similarity of answer and gold by an encoder, token by token.

Zhang, Kishore, Wu, Weinberger, Artzi: BERTScore: Evaluating Text Generation with BERT, ICLR 2020
(arXiv 1904.09675). Neither rescaled nor weighted by idf; values depend on encoder and layer, which
the estimator names.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.runtime.encoders import naming
from hopscope.runtime.similarities import bertscore
from hopscope.runtime.similarities.bertscore import TextSimilarity
from hopscope.runtime.types import Measurement
from hopscope.tracing.scoring.metric import AnswerMetric, Case, comparable


@dataclass(frozen=True)
class BERTScoreMetric:
    """Encodes the golds of a question once for all its answers."""

    similarity: TextSimilarity
    name: str = "bertscore"
    binary: bool = False

    @property
    def estimator(self) -> str:
        return f"{self.similarity.name}(f1, normaliser=none, golds=max)"

    def score(self, cases: Sequence[Case]) -> list[Measurement]:
        """The best similarity to a gold; 0 for an empty answer.

        Raises:
            ReaderError: the encoder failed.
        """
        golds = [comparable(case) for case in cases]
        asked: dict[tuple[str, ...], dict[str, float]] = {}
        for case, known in zip(cases, golds, strict=True):
            if not isinstance(known, str) and (answer := (case.answer or "").strip()):
                asked.setdefault(tuple(known), {})[answer] = 0.0
        for compared, answers in asked.items():
            alike = self.similarity.compare([*answers, *compared])
            best = [max(row[len(answers) :]) for row in alike[: len(answers)]]
            answers.update(zip(answers, best, strict=True))
        return [
            Measurement(value=None, reason=known, estimator=self.estimator)
            if isinstance(known, str)
            else Measurement(
                value=asked.get(tuple(known), {}).get((case.answer or "").strip(), 0.0),
                estimator=self.estimator,
            )
            for case, known in zip(cases, golds, strict=True)
        ]


def build(*, model: str, layer: int = -1) -> AnswerMetric:
    """`model` is a folder, a hub id, or `minilm` for the packaged one.

    Raises:
        UsageError: the encoder does not exist, cannot be loaded, or has no such layer.
        MissingExtraError: the package with MiniLM is not installed.
    """
    if model == naming.PACKAGED:
        model = str(naming.parse(model).passages.folder)
    return BERTScoreMetric(bertscore.build(model=model, layer=layer))
