"""LongLLMLingua: rank the candidates by how likely they make the question, then cut to a budget.

1. r_k = the mean of -ln p over the tokens of the question and a restrictive sentence, given
   document k alone; the lowest first (the appendix of SePer reads it the other way round).
2. Coarse: candidates are taken in that order until they have the budget's tokens; the rest is
   dropped.
3. Fine: of those taken, units are kept by ln p(token | question, text before) -
   ln p(token | text before), the highest first, until the budget is full: what the question makes
   likelier stays.

The budget is the share `rate` of the tokens of all candidates' texts, or `tokens`. The paper
compresses each document at a rate of its own, by its rank, and iterates over segments; here the
tokens of all compete in one pass. The hits' scores are -r_k.

Source: Jiang, Wu, Luo, Li, Lin, Yang, Qiu: LongLLMLingua, ACL 2024 (arXiv 2310.06839), sections 4.1
and 4.2; the rate is FlashRAG's.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from statistics import fmean
from typing import NamedTuple

from hopscope.runtime.compressors import _budget
from hopscope.runtime.compressors._budget import Unit, UnitKind
from hopscope.runtime.compressors.selective_context import TASK
from hopscope.runtime.ports import Reader
from hopscope.runtime.prompts import system
from hopscope.runtime.shortening import shortened
from hopscope.runtime.stages import Candidates, Compressed
from hopscope.runtime.types import Hit, Message, Passage, Prompt, Scored, ScoreRequest

RESTRICTION = "The answer to this question stands in the documents given."
ASK_TASK = "Write the question that the documents answer."
WRITE_TASK = "Question: {question}\nWrite a short text that answers it."


class Ranked(NamedTuple):
    """A candidate with what it makes of the question."""

    hit: Hit
    units: list[Unit]
    """Of its text, by contrast."""


@dataclass(frozen=True)
class LongLLMLingua:
    """See the module."""

    _: KW_ONLY
    reader: Reader
    rate: float = 0.55
    """Share of the tokens that may stay, if `tokens` is not given."""
    tokens: int | None = None
    """Of all candidates of a query that may stay."""
    unit: UnitKind = "word"

    def __post_init__(self) -> None:
        """Raises UsageError for a share or a budget that cannot be kept to."""
        _budget.check("long_llmlingua", self.rate, self.tokens)

    @property
    def name(self) -> str:
        kept = f"rate={self.rate:g}" if self.tokens is None else f"tokens={self.tokens}"
        return f"long_llmlingua(unit={self.unit},{kept})"

    def compress(self, asked: Sequence[Candidates]) -> list[Compressed]:
        """As the protocol says, all in one call; the best-ranked candidate comes first, and those
        of which nothing is left are left out.

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
        """Three for each candidate: the question given it, it given the question, it alone."""
        query = candidates.query
        towards = _budget.plain(WRITE_TASK.format(question=query))
        requests: list[ScoreRequest] = []
        texts = _budget.texts(candidates.passages)
        for passage, text in zip(candidates.passages, texts, strict=True):
            given = _given(passage)
            requests += [
                ScoreRequest(prompt=given, continuation=f"{query} {RESTRICTION}"),
                ScoreRequest(prompt=towards, continuation=text),
                ScoreRequest(prompt=_budget.plain(TASK), continuation=text),
            ]
        return requests

    def _ranked(self, hit: Hit, asked: Scored, towards: Scored, alone: Scored) -> Ranked:
        contrast = [a - b for a, b in zip(towards.logprobs, alone.logprobs, strict=True)]
        # Of a reader that gives no tokens at all nothing is known.
        score = fmean(asked.logprobs) if asked.logprobs else 0.0
        pieces = _budget.units(alone.tokens, contrast, self.unit)
        return Ranked(hit.model_copy(update={"score": score}), pieces)

    def _compressed(self, ranked: Sequence[Ranked]) -> Compressed:
        before = _budget.total([each.units for each in ranked])
        room = _budget.budget(self.rate, self.tokens, before)
        taken, length = [], 0
        for each in ranked:
            if length >= room:
                break
            taken.append(each)
            length += _budget.total([each.units])
        kept = _budget.within([each.units for each in taken], room)
        hits = (
            each.hit.model_copy(
                update={"passage": shortened(each.hit.passage, _budget.spelled(left))}
            )
            for each, left in zip(taken, kept, strict=True)
            if left
        )
        return Compressed(tuple(hits), before, _budget.total(kept))


def _given(passage: Passage) -> Prompt:
    """Before the question, the document."""
    return Prompt(
        messages=(system((passage,)), Message(role="user", content=ASK_TASK)),
        shown=(passage.key,),
    )


build = LongLLMLingua
