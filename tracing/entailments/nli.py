"""Any MNLI classifier that transformers can load: SePer's and semantic entropy's entailment.

Both papers use microsoft/deberta-v2-xlarge-mnli. Premise and hypothesis are question and answer
in one line, as in SePer's code: "Who sang it? Linda Davis". Which output means what is read from
the model's own `id2label`, because models disagree about the order.
"""

import os
from collections.abc import Sequence
from typing import Literal

from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.runtime.readers._checkpoint import locate

Device = Literal["auto", "cpu", "cuda", "mps"]


class Once:
    """Asks the classifier about each distinct pair of texts of a call once."""

    def __init__(self, classifier: Entailment) -> None:
        self.name = f"nli:{classifier.name}"
        self._classifier = classifier

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement, in order.

        Raises:
            EntailmentError: the model failed.
        """
        distinct = list(dict.fromkeys(statements))
        known = dict(zip(distinct, self._classifier.classify(distinct), strict=True))
        return [known[statement] for statement in statements]


def build(
    *,
    model: str,
    revision: str | None = None,
    device: Device = "auto",
    max_batch_tokens: int = 16_384,
) -> Entailment:
    """An entailment model over a sequence classifier with safetensors weights.

    Args:
        model: a folder saved with `save_pretrained`, or a hub id (downloaded if not in the cache).
        revision: the hub's branch, tag or commit.
        device: `auto` takes CUDA, then Apple's GPU, then the processor.
        max_batch_tokens: rows times positions computed together; bounds the memory used.

    Raises:
        UsageError: the model is not there, cannot be loaded, or its classes are not entailment,
            neutral and contradiction.
    """
    checkpoint = locate(model, revision)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # see runtime.readers.hf
    from hopscope.tracing.entailments._classifier import load

    return Once(load(checkpoint, device=device, max_batch_tokens=max_batch_tokens))


def statement_texts(statement: Statement) -> tuple[str, str]:
    """Premise and hypothesis as the model reads them."""
    question = statement.question.strip()
    if question and not question.endswith("?"):
        question += "?"
    return f"{question} {statement.premise}".strip(), f"{question} {statement.hypothesis}".strip()
