"""A loaded sequence classifier: pairs of texts in, distributions over three relations out."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hopscope.runtime.errors import EntailmentError, UsageError, first_line
from hopscope.runtime.models import classifier
from hopscope.runtime.models.checkpoint import Checkpoint
from hopscope.runtime.models.classifier import Inputs
from hopscope.runtime.models.devices import Precision
from hopscope.runtime.models.positions import longest
from hopscope.runtime.ports import Probabilities, Statement

RELATIONS = ("entailment", "neutral", "contradiction")
EQUIVALENT = frozenset({"equivalent", "entailment", "same", "correct", "yes", "true"})
UNNAMED = {"label_0": 0, "label_1": 1}
"""transformers' names of unnamed classes. BEM's second one is equivalent, here and as its
authors publish it."""

Texts = Callable[[Statement], tuple[str, str]]


class Classifier:
    """A model that compares two texts. Threads may share it; one computes at a time.

    Args:
        texts: what the model reads of a statement.
        order: which of its outputs are entailment, neutral and contradiction; None for a relation
            that it does not know.
        first_is_cut: whether of a pair that is too long only the first text loses its end; else
            the longer one does.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        texts: Texts,
        order: Sequence[int | None],
        max_batch_tokens: int,
        first_is_cut: bool = False,
    ) -> None:
        self.name = name
        self._model = model
        self._tokenizer = tokenizer
        self._texts = texts
        self._order = order
        self._max_batch_tokens = max_batch_tokens
        self._max_length = longest(model.config, tokenizer)
        self._first_is_cut = first_is_cut
        self._lock = threading.Lock()

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement, computed in batches of like length, equal pairs
        once.

        A pair that is longer than the model's context loses the end of its longer text, or of its
        first.

        Raises:
            EntailmentError: the model failed.
        """
        with self._lock:
            try:
                encoded = [self._encode(self._texts(statement)) for statement in statements]
                logits = classifier.logits(
                    self._model, self._tokenizer, encoded, self._max_batch_tokens
                )
            except (RuntimeError, ValueError, IndexError) as error:
                raise EntailmentError(f"{self.name}: {first_line(error)}") from error
        return [self._probabilities(row.softmax(dim=-1).tolist()) for row in logits]

    def _encode(self, pair: tuple[str, str]) -> Inputs:
        # A second text that leaves no room for the first must be cut, too.
        room = self._first_is_cut and len(self._tokenizer("", pair[1]).input_ids) < self._max_length
        cut = {"truncation": "only_first" if room else "longest_first"}
        return Inputs.of(self._tokenizer(*pair, **cut, max_length=self._max_length))

    def _probabilities(self, row: Sequence[float]) -> Probabilities:
        return Probabilities(*(0.0 if output is None else row[output] for output in self._order))


def load(
    checkpoint: Checkpoint,
    *,
    texts: Texts,
    device: str,
    max_batch_tokens: int,
    precision: Precision = "single",
) -> Classifier:
    """Bring an MNLI classifier into memory. Its name tells another precision than single.

    Raises:
        UsageError: transformers cannot load it, or it is no MNLI classifier.
    """
    config = classifier.configuration(checkpoint)
    order = class_order(config.id2label, checkpoint.name)
    model, tokenizer = classifier.load(
        checkpoint, config, device=device, kind="classifier", precision=precision
    )
    return Classifier(
        model,
        tokenizer,
        name=f"nli:{checkpoint.name}"
        + ("" if precision == "single" else f",precision={precision}"),
        texts=texts,
        order=order,
        max_batch_tokens=max_batch_tokens,
    )


def load_equivalence(
    checkpoint: Checkpoint, *, device: str, max_batch_tokens: int, equivalent: int | None = None
) -> Classifier:
    """Bring a classifier of answer equivalence into memory, in single precision.

    Args:
        equivalent: which class, 0 or 1, means equivalent; None reads it from the labels.

    Raises:
        UsageError: transformers cannot load it, it has not two classes, or nothing tells which of
            them means equivalent.
    """
    config = classifier.configuration(checkpoint)
    name = f"bem:{checkpoint.name}"
    if equivalent is None:
        equivalent = equivalent_class(config.id2label, checkpoint.name)
    else:
        if len(config.id2label) != 2 or equivalent not in (0, 1):
            raise UsageError(
                f"{checkpoint.name}: equivalent={equivalent} is no class of a model with "
                f"{len(config.id2label)}: a classifier of answer equivalence has two, 0 and 1"
            )
        name += f",equivalent={equivalent}"
    model, tokenizer = classifier.load(checkpoint, config, device=device, kind="classifier")

    def texts(statement: Statement) -> tuple[str, str]:
        separator = tokenizer.sep_token or ""
        second = f"{statement.hypothesis} {separator} {statement.question}"
        return statement.premise, " ".join(second.split())

    return Classifier(
        model,
        tokenizer,
        name=name,
        texts=texts,
        order=(equivalent, None, 1 - equivalent),
        max_batch_tokens=max_batch_tokens,
        first_is_cut=True,
    )


def class_order(id2label: Mapping[int, str], name: str) -> list[int]:
    """Which of the model's outputs are entailment, neutral and contradiction.

    Raises:
        UsageError: the labels are not these three.
    """
    by_label = {label.strip().casefold(): int(index) for index, label in id2label.items()}
    if sorted(by_label) != sorted(RELATIONS) or len(id2label) != len(RELATIONS):
        raise UsageError(
            f"{name}: its classes are {', '.join(id2label.values())}; an entailment model has "
            f"{', '.join(RELATIONS)} (see id2label in its config.json)"
        )
    return [by_label[relation] for relation in RELATIONS]


def equivalent_class(id2label: Mapping[int, str], name: str) -> int:
    """Which of the model's two outputs means that the answers are equivalent; the second, as in
    BEM, where they have no names.

    Raises:
        UsageError: the labels do not tell.
    """
    by_label = {label.strip().casefold(): int(index) for index, label in id2label.items()}
    if by_label == UNNAMED:
        return UNNAMED["label_1"]
    found = [index for label, index in by_label.items() if label in EQUIVALENT]
    if len(found) != 1 or len(id2label) != 2:
        raise UsageError(
            f"{name}: its classes are {', '.join(id2label.values())}; a classifier of answer "
            "equivalence has two, one of them called equivalent: say which with equivalent=0 or "
            "equivalent=1"
        )
    return found[0]
