"""SePer's own rules for one answer: the belief in the golds if the answer were the only reply.

SePer-S takes the larger P(entailment) of the two directions between answer and gold, of the best
gold (eq. 8-10, directions from the public code). SePer-H asks whether the answer and some gold mean
the same: no contradiction either way, and not neutral both ways. Both see one gold at a time.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.tracing.beliefs import belief
from hopscope.tracing.pairs.clustering import equivalent
from hopscope.tracing.scoring.correctness import Answered, correctness

Rule = Literal["entails", "seper", "seper_hard"]
"""`entails` the judge's P(right), or P(answer entails gold) of the best gold; `seper` and
`seper_hard` as above."""


def chances(judge: Entailment, answered: Sequence[Answered], rule: Rule) -> list[float]:
    """The probability or belief of each answer, in [0, 1]; 0 without golds.

    Raises:
        EntailmentError: the model failed.
    """
    if rule == "entails":
        return correctness(judge, answered)
    golds = [[gold for gold in dict.fromkeys(row.golds) if gold.strip()] for row in answered]
    pairs = [
        (row.question, row.answer, gold)
        for row, known in zip(answered, golds, strict=True)
        for gold in known
    ]
    forward = judge.classify([Statement(asked, answer, gold) for asked, answer, gold in pairs])
    backward = judge.classify([Statement(asked, gold, answer) for asked, answer, gold in pairs])
    relations = iter(zip(forward, backward, strict=True))
    score = _soft if rule == "seper" else _hard
    return [max((score(*next(relations)) for _ in known), default=0.0) for known in golds]


def _soft(forward: Probabilities, backward: Probabilities) -> float:
    there, back = np.array([[forward.entailment]]), np.array([[backward.entailment]])
    return float(belief.agreement(there, back)[0, 0])


def _hard(forward: Probabilities, backward: Probabilities) -> float:
    return float(equivalent(forward, backward, "loose"))
