"""Ranks candidates by their utility to the reader, not by their similarity to the query.

`by` a meter, `grogu` of the command line: the score is the utility of each candidate alone as the
whole evidence; for GroGU that is the reader's confidence in its answer. Or by `item`: the reader
drafts an answer from all candidates and judges with it which of them are useful; these come first,
each group in its old order, with the scores 1, 1/2, 1/3, ...

A candidate that cannot be measured comes last. The runtime knows meters by their port only; the
caller passes one.

Source: GroGU (2026), section 3; ITEM (Zhang, Bi, Guo, Cheng, arXiv 2406.11290), one iteration of
ITEM-As.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from hopscope.runtime.errors import UsageError
from hopscope.runtime.judgments import item_prompts
from hopscope.runtime.judgments.order import by_place
from hopscope.runtime.judgments.utility_judgment import Judgment, judge
from hopscope.runtime.ports import Prompts, Reader, UtilityMeter
from hopscope.runtime.prompting.fitting import generate
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.stages import Candidates, Reranker, Reranking
from hopscope.runtime.types import Hit, Question

DRAFT_TOKENS = 32
LOWEST = -1e9
"""The score of a candidate that cannot be measured."""


@dataclass(frozen=True)
class ByMeter:
    """The utility of each candidate alone."""

    meter: UtilityMeter

    @property
    def name(self) -> str:
        return f"utility(by={self.meter.name})"

    def rerank(self, asked: Sequence[Candidates]) -> list[Reranking]:
        """See the protocol.

        Raises:
            ReaderError: the reader failed.
        """
        return [Reranking(self._rank(candidates)) for candidates in asked]

    def _rank(self, candidates: Candidates) -> tuple[Hit, ...]:
        alone = [(passage,) for passage in candidates.passages]
        measured = self.meter.measure(Question(text=candidates.query), alone)
        values = [LOWEST if each.value is None else each.value for each in measured]
        hits = (
            Hit(passage=passage, score=value)
            for passage, value in zip(candidates.passages, values, strict=True)
        )
        return tuple(sorted(hits, key=lambda hit: -hit.score))


@dataclass(frozen=True)
class ByJudgment:
    """The reader's own judgment of which candidates are useful."""

    reader: Reader
    judgment: Judgment
    seed: int
    prompts: Prompts = DEFAULT_PROMPTS

    @property
    def name(self) -> str:
        return f"utility(by=item,judgment={self.judgment})"

    def rerank(self, asked: Sequence[Candidates]) -> list[Reranking]:
        """See the protocol; `ok` tells whether all judgments could be parsed.

        Raises:
            ReaderError: the reader failed, or the candidates do not fit it.
        """
        return [self._rank(candidates) for candidates in asked]

    def _rank(self, candidates: Candidates) -> Reranking:
        passages = candidates.passages
        prompt = partial(item_prompts.answer, candidates.query, prompts=self.prompts)
        draft = generate(self, passages, prompt, max_tokens=DRAFT_TOKENS, stop=("\n",))
        answer = draft.text.strip()
        useful, ok = judge(self, candidates.query, passages, self.judgment, answer)
        keys = {passage.key for passage in useful}
        rest = (passage for passage in passages if passage.key not in keys)
        return Reranking(by_place((*useful, *rest)), ok=ok)


def build(
    *,
    by: Literal["grogu", "item"] = "grogu",
    judgment: Judgment = "listwise",
    reader: Reader,
    meter: UtilityMeter | None = None,
    seed: int = 0,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> Reranker:
    """
    Args:
        judgment: whether `item` judges all candidates at once or each alone.

    Raises:
        UsageError: `grogu` is chosen without a meter.
    """
    if by == "item":
        return ByJudgment(reader, judgment, seed, prompts)
    if meter is None:
        raise UsageError("utility reranking by grogu needs its meter, which this program lacks")
    return ByMeter(meter)
