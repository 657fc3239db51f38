"""The similarity of EoR's answers by several measures.

Invariant: every value is in [0, 1] and symmetric, and an empty answer has similarity 0 to all. A
measure that lacks its model is left out and named, never zero: the weights of the others are
normalised without it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np

from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Entailment, Statement
from hopscope.runtime.similarities import bertscore
from hopscope.runtime.specs import listed
from hopscope.runtime.texts.answers import contains, exact_match
from hopscope.workflows.eor.voting import Floats

KNOWN = ("em", "exact", "bertscore", "nli", "nli_question")
"""`em` is containment of whole words either way, as in the authors' code, `exact` equality;
`nli_question` puts the question before both answers."""

Compare = Callable[[str, Sequence[str]], Sequence[Sequence[float]]]
"""From a question and distinct answers to the similarity of each pair, not yet symmetric."""


def parse_weights(text: str) -> dict[str, float]:
    """`em=1,nli=0.5` as weights by similarity.

    Raises:
        UsageError: a similarity is unknown or repeated, or a weight is not a number from 0 on.
    """
    weights: dict[str, float] = {}
    for name, number in (listed(text, "similarity") or {"": ""}).items():
        if name not in KNOWN:
            raise UsageError(
                f"similarity {name!r} is unknown: give NAME=WEIGHT with one of {', '.join(KNOWN)}"
            )
        try:
            weights[name] = float(number or 1)
        except ValueError:
            weights[name] = -1
        if not 0 <= weights[name] < np.inf:
            raise UsageError(f"similarity {name}={number}: its weight must be a number from 0 on")
    return weights


@cache
def encoder(model: str, layer: int, idf: bool) -> bertscore.TextSimilarity:
    """BERTScore's encoder, loaded once for all builds of the workflow.

    Raises:
        UsageError: as `bertscore.build`.
    """
    return bertscore.build(model=model, layer=layer, idf=idf)


def contained(question: str, answers: Sequence[str]) -> list[list[float]]:
    return [[float(contains(one, other)) for other in answers] for one in answers]


def equal(question: str, answers: Sequence[str]) -> list[list[float]]:
    return [[exact_match(one, [other]) for other in answers] for one in answers]


def entailed(model: Entailment, question: str, answers: Sequence[str]) -> list[list[float]]:
    """The probability that each answer implies each other one."""
    pairs = [Statement(question, one, other) for one in answers for other in answers]
    chances = [chance.entailment for chance in model.classify(pairs)]
    size = len(answers)
    return [chances[start : start + size] for start in range(0, size * size, size)]


def comparisons(
    entailment: Entailment | None, encoder: bertscore.TextSimilarity | None
) -> dict[str, tuple[Compare, bool]]:
    """The similarities with an available model. True averages the two directions, False takes
    the higher."""
    found: dict[str, tuple[Compare, bool]] = {"em": (contained, False), "exact": (equal, False)}
    if encoder is not None:
        likes = encoder
        found["bertscore"] = (lambda question, answers: likes.compare(answers), True)
    if entailment is not None:
        model = entailment
        found["nli"] = (lambda question, answers: entailed(model, "", answers), True)
        found["nli_question"] = (lambda question, answers: entailed(model, question, answers), True)
    return found


def compare(
    question: str, answers: Sequence[str], available: Mapping[str, tuple[Compare, bool]]
) -> dict[str, Floats]:
    """Each similarity over all pairs of answers. Models compare distinct answers only."""
    distinct = list(dict.fromkeys(answer for answer in answers if answer.strip()))
    place = [distinct.index(answer) if answer.strip() else -1 for answer in answers]
    tensors: dict[str, Floats] = {}
    for name, (function, mean) in available.items():
        padded = np.zeros((len(distinct) + 1, len(distinct) + 1))  # the last for empty answers
        if distinct:
            padded[:-1, :-1] = np.clip(np.asarray(function(question, distinct), float), 0, 1)
        both = (padded + padded.T) / 2 if mean else np.maximum(padded, padded.T)
        tensors[name] = both[np.ix_(place, place)]
    return tensors
