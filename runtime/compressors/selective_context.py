"""Selective context: drops tokens that the reader could have guessed.

The information of a token is -ln p(token | text before it); of a unit, the mean over its tokens.
Over all candidates together, units strictly below the percentile `ratio` are dropped (the paper
sums per unit and its code takes the mean; the logarithm's base changes nothing). With `tokens`,
instead, the units of the most information stay that fit into so many.

A causal reader behind a chat format has no text before the first token; it is asked for a short
text and the passage is scored as its reply. Only texts are compressed, not titles. Where the paper
takes phrases, which need a parser, the default unit is the word.

Source: Li, Dong, Guerin, Lin: Compressing Context to Enhance Inference Efficiency of Large Language
Models, EMNLP 2023 (arXiv 2310.06201).
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from hopscope.runtime.compressors import _budget
from hopscope.runtime.compressors._budget import Unit, UnitKind
from hopscope.runtime.ports import Prompts, Reader
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.shortening import shortened
from hopscope.runtime.stages import Candidates, Compression
from hopscope.runtime.types import ScoreRequest

PROMPT = "compressor/text"


@dataclass(frozen=True)
class SelectiveContext:
    """See the module."""

    _: KW_ONLY
    reader: Reader
    ratio: float = 0.35
    """Share of the units that is dropped, if `tokens` is not given."""
    tokens: int | None = None
    """Most tokens that stay of all candidates of a query."""
    unit: UnitKind = "word"
    prompts: Prompts = DEFAULT_PROMPTS

    def __post_init__(self) -> None:
        """Raises UsageError for an impossible share or budget."""
        _budget.check("selective_context", self.ratio, self.tokens)

    @property
    def name(self) -> str:
        kept = f"ratio={self.ratio:g}" if self.tokens is None else f"tokens={self.tokens}"
        return f"selective_context(unit={self.unit},{kept})"

    def compress(self, asked: Sequence[Candidates]) -> list[Compression]:
        """See the protocol; one call for all texts. Candidates without any text left are dropped.

        Raises:
            ReaderError: the reader failed or gives no likelihoods, or a text does not fit it.
        """
        prompt = self.prompts.render(PROMPT)
        texts = [text for each in asked for text in _budget.texts(each.passages)]
        scored = iter(
            self.reader.score([ScoreRequest(prompt=prompt, continuation=t) for t in texts])
        )
        results = []
        for candidates in asked:
            scores = [_budget.checked(next(scored), self.reader.name) for _ in candidates.hits]
            surprise = [
                _budget.units(one.tokens, [-value for value in one.logprobs], self.unit)
                for one in scores
            ]
            results.append(self._compressed(candidates, surprise))
        return results

    def _compressed(self, candidates: Candidates, given: Sequence[Sequence[Unit]]) -> Compression:
        if self.tokens is None:
            kept = _budget.above_percentile(given, self.ratio)
        else:
            kept = _budget.within(given, self.tokens)
        hits = (
            hit.model_copy(update={"passage": shortened(hit.passage, _budget.spelled(left))})
            for hit, left in zip(candidates.hits, kept, strict=True)
            if left
        )
        return Compression(tuple(hits), _budget.total(given), _budget.total(kept))


build = SelectiveContext
