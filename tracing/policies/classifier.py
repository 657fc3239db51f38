"""Adaptive-RAG's idea: the question alone decides whether to retrieve never, once or repeatedly.

Jeong, Baek, Cho, Hwang, Park: Adaptive-RAG, NAACL 2024 (arXiv 2403.14403) train a T5; here it is a
linear model over the words and pairs of words of the question, fitted by
`hopscope budget fit --kind classifier`. The label is the smallest number of retrievals with the
best answer; 2 means as many as the workflow wants.
"""

from dataclasses import dataclass
from pathlib import Path

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision
from hopscope.tracing.learned.classifier_file import ClassifierFile
from hopscope.tracing.learned.files import read

MANY = 2


@dataclass(frozen=True)
class ClassifierPolicy:
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


def build(
    *, file: Path, workflow: str | None, reader_name: str, prompts: str | None = None
) -> Policy:
    """`workflow`, `reader_name` and `prompts` are the run's; the file must be for the first two."""
    return ClassifierPolicy(
        read(ClassifierFile, file, workflow=workflow, reader=reader_name, prompts=prompts)
    )
