"""Gold log-probability: how likely the reader writes the gold answer; nothing is sampled.

    value = max over golds of (1/L) Σ_t ln p(gold_t | prompt with the evidence, gold_<t)

with L the number of the gold's tokens: the best gold's mean log-probability per token, in nats, at
most 0. `gold_probability` is the same on the scale of probabilities, exp of it: the geometric mean
of the tokens' probabilities. A step's credit is what its passages add to either. It costs one
forward pass for each evidence set and gold, of which the prompts' common beginnings are read once.

Caveat: it scores the golds as they are spelled, after the prompt for short answers. A reader that
answers rightly in other words gets little; one that would go on after the gold ("Grand Rovmar"
where it means "Grand Rovmar Hall") gets all, because the end of the answer is not scored. SePer
reads the meaning of whole replies instead. The mean counts all tokens alike: the later ones of a
name follow from the first, so that a wrong gold, too, has a value far above its probability.
Logarithms have no floor: evidence that only turns an absurd answer into an unlikely one earns as
much as evidence that turns an unlikely one into a sure one.

A reader that thinks is scored without a thought. The value is exact for the reader: n is 1, there
is no seed and no interval.

Source: IGPO (arXiv 2510.14967) rewards a turn by the gain of the probability, TRACE
(arXiv 2607.13988) by that of the log-probability under a frozen model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from math import exp
from typing import Literal

from hopscope.runtime.ports import Display, Reader
from hopscope.runtime.types import Measurement, Passage, Question, Record, Scored, ScoreRequest
from hopscope.tracing.asking import asking
from hopscope.tracing.asking.asking import Unmeasured

DISPLAY = Display("GoldLogP", unit="nats", gold=True)
DISPLAY_GOLD_PROBABILITY = Display("GoldP", unit="probability", gold=True, full_bar=1.0)

Scale = Literal["logprob", "probability"]


class GoldScores(Record):
    """The reader's likelihoods of the golds with one evidence set."""

    golds: dict[str, Scored]
    """The tokens of each gold, with their log-probabilities."""

    @property
    def means(self) -> dict[str, float]:
        """The mean log-probability of each gold's tokens, in nats."""
        return {
            gold: sum(scored.logprobs) / len(scored.logprobs) for gold, scored in self.golds.items()
        }

    @property
    def best(self) -> str:
        """The gold with the highest mean, the first of equals."""
        means = self.means
        return max(means, key=means.__getitem__)


@dataclass(frozen=True)
class GoldLogprob:
    """A utility meter. All golds after all evidence sets are scored in one call to the reader."""

    reader: Reader
    """Scores the golds."""
    _: KW_ONLY
    scale: Scale = "logprob"
    """`logprob` is meter `gold_logprob`; `probability` is meter `gold_probability`."""
    prompts: str = ""
    """A set of prompts, or its folder, whose `meter/answer` stands before the gold."""

    @property
    def name(self) -> str:
        return f"gold_{self.scale}"

    @property
    def estimator(self) -> str:
        """The formula and its options, enough to reproduce a value."""
        prompt = asking.prompt_name(self.prompts)
        return f"{self.name}(tokens=mean, golds=max, end=not scored, prompt={prompt})"

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        """The value of each evidence set: nats of at most 0, or a probability.

        Raises:
            ReaderError: the model failed.
        """
        return [self._measurement(scores) for scores in self.scores(question, evidences)]

    def scores(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[GoldScores | Unmeasured]:
        """The likelihoods of all golds with each evidence set, token by token.

        Raises:
            ReaderError: the model failed.
        """
        golds = list(dict.fromkeys(gold.strip() for gold in question.answers if gold.strip()))
        if not golds:
            return [Unmeasured("no gold answer to score") for _ in evidences]
        contexts = {asking.content(evidence): evidence for evidence in evidences}
        wanted = [
            ScoreRequest(
                prompt=asking.prompt(question.text, evidence, self.prompts), continuation=gold
            )
            for evidence in contexts.values()
            for gold in golds
        ]
        scored = asking.score(self.reader, wanted)
        found = {
            key: _together(dict(zip(golds, scored[at : at + len(golds)], strict=True)))
            for key, at in zip(contexts, range(0, len(scored), len(golds)), strict=True)
        }
        return [found[asking.content(evidence)] for evidence in evidences]

    def _measurement(self, scores: GoldScores | Unmeasured) -> Measurement:
        if isinstance(scores, Unmeasured):
            return Measurement(value=None, reason=scores.reason, estimator=self.estimator)
        mean = scores.means[scores.best]
        value = mean if self.scale == "logprob" else exp(mean)
        return Measurement(value=value, n=1, estimator=self.estimator)


def _together(scored: Mapping[str, Scored | Unmeasured]) -> GoldScores | Unmeasured:
    """All golds of one evidence set; without one of them the best is unknown."""
    known: dict[str, Scored] = {}
    for gold, each in scored.items():
        if isinstance(each, Unmeasured):
            return each
        if not each.logprobs:
            return Unmeasured(f"the reader gives no log-probabilities of the gold {gold!r}")
        known[gold] = each
    return GoldScores(golds=known)


build = GoldLogprob
