"""Adaptive-RAG's idea: tell from the question alone whether to retrieve never, once or repeatedly.

Jeong, Baek, Cho, Hwang, Park: Adaptive-RAG, NAACL 2024 (arXiv 2403.14403) train a T5; here it is a
linear model over the words and pairs of words of the question, learned by
`hopscope budget fit --kind classifier`. The label is the least number of retrievals with which the
question was answered best, 2 standing for as many as the workflow wants.
"""

from dataclasses import dataclass
from pathlib import Path

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision
from hopscope.tracing.policies._classifier_file import ClassifierFile
from hopscope.tracing.policies._learned import read

MANY = 2


@dataclass(frozen=True)
class Classifier:
    file: ClassifierFile
    name: str = "classifier"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        needed, probability = self.file.classify(moment.question.text)
        wanted = "many retrievals" if needed >= MANY else f"{needed} retrievals"
        return Decision(
            policy=self.name,
            retrieve=needed >= MANY or moment.retrievals < needed,
            reason=f"the question looks like one of {wanted} ({probability:.2f})",
            signals={"needed": needed, "probability": probability},
        )


def build(*, file: Path, workflow: str, reader_name: str) -> Policy:
    """`workflow` and `reader_name` are the run's, which the file must be for."""
    return Classifier(read(ClassifierFile, file, workflow=workflow, reader=reader_name))
