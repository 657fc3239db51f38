"""A reader that rates answers: the common part of the judges in SePer's appendix."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hopscope.runtime.ports import Reader
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS, PromptSet
from hopscope.runtime.types import Measurement, Prompt
from hopscope.tracing.answer_metrics import _rating
from hopscope.tracing.scoring.metric import Case

Asked = tuple[Prompt, ...] | str
"""The prompts that rate an answer, or the reason why there is nothing to rate. With two prompts,
the answer's value is the first rating minus the second."""


@dataclass(frozen=True)
class RatingJudge:
    """An answer metric without gold answers: one greedy reply to each prompt."""

    name: str
    reader: Reader
    seed: int
    prompt: str
    """The prompt's name in a set."""
    asked: Callable[[Case, PromptSet], Asked]
    """The prompts of a set about an answer."""
    prompts: PromptSet = DEFAULT_PROMPTS
    binary: bool = False

    @property
    def estimator(self) -> str:
        """The rule with its options, enough to reproduce a value."""
        own = f", prompt={self.prompts.hash}" if self.prompts.differs(self.prompt) else ""
        return (
            f"{self.name.replace('_', '-')}(reader={self.reader.name}, rating=1-10 as (r-1)/9, "
            f"temperature=0, max_tokens={_rating.MAX_TOKENS}, normaliser=none{own})"
        )

    def score(self, cases: Sequence[Case]) -> list[Measurement]:
        """All prompts go to the reader in one call.

        Raises:
            ReaderError: the reader failed.
        """
        asked = [self.asked(case, self.prompts) for case in cases]
        prompts = [prompt for each in asked if not isinstance(each, str) for prompt in each]
        rated = _rating.rate(self.reader, prompts, seed=self.seed)
        return [
            self._measurement([each] if isinstance(each, str) else [rated[p] for p in each])
            for each in asked
        ]

    def _measurement(self, found: Sequence[float | str]) -> Measurement:
        estimator, seed = self.estimator, self.seed
        for reason in found:
            if isinstance(reason, str):
                return Measurement(value=None, reason=reason, seed=seed, estimator=estimator)
        first, *others = (value for value in found if not isinstance(value, str))
        return Measurement(value=first - sum(others), n=1, seed=seed, estimator=estimator)
