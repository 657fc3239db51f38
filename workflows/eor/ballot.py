"""One vote of EoR and its full record."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hopscope.runtime.ports import Entailment
from hopscope.runtime.similarities.bertscore import TextSimilarity
from hopscope.runtime.types import Record
from hopscope.workflows.eor import _similarities, voting
from hopscope.workflows.eor.voting import Floats, VotingRule
from hopscope.workflows.eor.weights_file import Weights


class Ballot(Record):
    """The output of the vote step."""

    pool: tuple[str, ...]
    answers: tuple[str, ...]
    winner: int
    """Position in the pool."""
    scores: tuple[float, ...]
    weights: tuple[float, ...]
    """ω^r."""
    shares: dict[str, float]
    """ω^s of the similarities that were used, summing to 1."""
    left_out: tuple[str, ...]
    """Similarities that have a weight but no model: no encoder, or no entailment model."""
    similarities: dict[str, tuple[tuple[float, ...], ...]]
    """By measure, the similarity of each pair of answers."""


def _rounded(values: Floats) -> tuple[float, ...]:
    """The values without their last digits, which differ between machines."""
    return tuple(np.round(values, 9).tolist())


class Voter(NamedTuple):
    """The weights, the rule and the encoder that decide a vote."""

    by: Weights
    rule: VotingRule
    encoder: TextSimilarity | None = None
    """For BERTScore."""

    def vote(self, question: str, answers: Sequence[str], entailment: Entailment | None) -> Ballot:
        """Compare the answers by all similarities with an available model, and choose one."""
        available = _similarities.comparisons(entailment, self.encoder)
        wanted = {name: weight for name, weight in self.by.similarities.items() if weight > 0}
        used = {name: weight for name, weight in wanted.items() if name in available}
        tensors = _similarities.compare(question, answers, {name: available[name] for name in used})
        zeros = np.zeros((1, len(answers), len(answers)))
        stacked = np.stack(list(tensors.values())) if tensors else zeros
        similarity = voting.weighted(stacked, list(used.values()) or [0.0])
        verdict = voting.vote(similarity, self.by.retrievers, self.rule)
        total = sum(used.values())
        return Ballot(
            pool=self.by.pool,
            answers=tuple(answers),
            winner=int(verdict.winner),
            scores=_rounded(verdict.scores),
            weights=self.by.retrievers,
            shares={name: weight / total for name, weight in used.items()},
            left_out=tuple(name for name in wanted if name not in available),
            similarities={name: tuple(map(_rounded, rows)) for name, rows in tensors.items()},
        )
