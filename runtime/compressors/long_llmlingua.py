"""LongLLMLingua: ranks candidates by the likelihood they give the question, then cuts to a budget.

1. r_k = the mean of -ln p over the tokens of the question and a restrictive sentence, given
   document k alone; the lowest first (the appendix of SePer reads it the other way round).
2. Coarse: candidates are taken in that order until they have the budget's tokens and `slack` more;
   the rest is dropped.
3. Fine: each of these keeps a share of its tokens, `spread` more than the middle one for the first,
   `spread` less for the last; together they keep to the budget. Within a text, units are kept by
   ln p(token | question, text before) - ln p(token | text before), the highest first: tokens that
   the question makes likelier stay.

The budget is the share `rate` of the tokens of all candidates' texts, or `tokens`. The paper scores
segment by segment, each after the compressed segments before it; here a text is scored once. The
hits' scores are -r_k.

Source: Jiang, Wu, Luo, Li, Lin, Yang, Qiu: LongLLMLingua, ACL 2024 (arXiv 2310.06839), sections 4.1
and 4.2; the rate is FlashRAG's, the spread that of the authors' example, the slack their program's.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from statistics import fmean
from typing import NamedTuple

from hopscope.runtime.compressors import _budget
from hopscope.runtime.compressors._budget import Unit, UnitKind
from hopscope.runtime.compressors._rates import ends
from hopscope.runtime.compressors.selective_context import PROMPT
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Prompts, Reader
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.shortening import shortened
from hopscope.runtime.stages import Candidates, Compression
from hopscope.runtime.types import Hit, Scored, ScoreRequest

RESTRICTION = "The answer to this question stands in the documents given."
QUESTION_PROMPT, ANSWER_PROMPT = "compressor/question", "compressor/answer"


class RankedCandidate(NamedTuple):
    """A candidate with its score and its units."""

    hit: Hit
    units: list[Unit]
    """Units of its text; the value is the contrast of step 3."""


@dataclass(frozen=True)
class LongLLMLingua:
    """See the module."""

    _: KW_ONLY
    reader: Reader
    rate: float = 0.55
    """Share of the tokens that may stay, if `tokens` is not given."""
    tokens: int | None = None
    """Most tokens that stay of all candidates of a query."""
    unit: UnitKind = "word"
    spread: float = 0.3
    """The share of tokens that the first candidate keeps beyond the middle one, and the last one
    below it; 0 is the same share for each."""
    slack: int = 100
    """Tokens beyond the budget up to which whole candidates are taken."""
    prompts: Prompts = DEFAULT_PROMPTS

    def __post_init__(self) -> None:
        """Raises UsageError for an impossible share or budget."""
        _budget.check("long_llmlingua", self.rate, self.tokens)
        _budget.check("long_llmlingua", self.spread, None)
        if self.slack < 0:
            raise UsageError(f"long_llmlingua: slack={self.slack}: take 0 tokens or more")

    @property
    def name(self) -> str:
        kept = f"rate={self.rate:g}" if self.tokens is None else f"tokens={self.tokens}"
        rest = f"spread={self.spread:g},slack={self.slack}"
        return f"long_llmlingua(unit={self.unit},{kept},{rest})"

    def compress(self, asked: Sequence[Candidates]) -> list[Compression]:
        """See the protocol; one call for all. The best-ranked candidate comes first; candidates
        without any text left are dropped.

        Raises:
            ReaderError: the reader failed or gives no likelihoods, or a text does not fit it.
        """
        requests = [request for each in asked for request in self._requests(each)]
        scored = (_budget.checked(s, self.reader.name) for s in self.reader.score(requests))
        results = []
        for candidates in asked:
            triples = [(next(scored), next(scored), next(scored)) for _ in candidates.hits]
            ranked = [
                self._ranked(hit, *three)
                for hit, three in zip(candidates.hits, triples, strict=True)
            ]
            results.append(self._compressed(sorted(ranked, key=lambda r: -r.hit.score)))
        return results

    def _requests(self, candidates: Candidates) -> list[ScoreRequest]:
        """Three requests for each candidate: question after candidate, candidate after question,
        candidate alone."""
        query = candidates.query
        towards = self.prompts.render(ANSWER_PROMPT, question=query)
        alone = self.prompts.render(PROMPT)
        requests: list[ScoreRequest] = []
        texts = _budget.texts(candidates.passages)
        for passage, text in zip(candidates.passages, texts, strict=True):
            given = self.prompts.render(QUESTION_PROMPT, (passage,))
            requests += [
                ScoreRequest(prompt=given, continuation=f"{query} {RESTRICTION}"),
                ScoreRequest(prompt=towards, continuation=text),
                ScoreRequest(prompt=alone, continuation=text),
            ]
        return requests

    def _ranked(self, hit: Hit, asked: Scored, towards: Scored, alone: Scored) -> RankedCandidate:
        contrast = [a - b for a, b in zip(towards.logprobs, alone.logprobs, strict=True)]
        # Without any tokens from the reader the score is unknown.
        score = fmean(asked.logprobs) if asked.logprobs else 0.0
        pieces = _budget.units(alone.tokens, contrast, self.unit)
        return RankedCandidate(hit.model_copy(update={"score": score}), pieces)

    def _compressed(self, ranked: Sequence[RankedCandidate]) -> Compression:
        before = _budget.total([each.units for each in ranked])
        room = _budget.budget(self.rate, self.tokens, before)
        taken: list[RankedCandidate] = []
        lengths: list[int] = []
        for each in ranked:
            if sum(lengths) >= room + self.slack:
                break
            taken.append(each)
            lengths.append(_budget.total([each.units]))
        kept: list[list[Unit]] = []
        for each, end in zip(taken, ends(lengths, room, self.spread), strict=True):
            kept += _budget.within([each.units], end - _budget.total(kept))
        hits = (
            each.hit.model_copy(
                update={"passage": shortened(each.hit.passage, _budget.spelled(left))}
            )
            for each, left in zip(taken, kept, strict=True)
            if left
        )
        return Compression(tuple(hits), before, _budget.total(kept))


build = LongLLMLingua
