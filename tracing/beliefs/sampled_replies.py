"""A reader's replies to each context: as many samples as needed, or an enumeration."""

from collections.abc import Mapping, Sequence
from itertools import compress
from math import fsum
from typing import NamedTuple

import numpy as np

from hopscope.runtime.errors import CapabilityError, ContextOverflowError
from hopscope.runtime.ports import BranchingReader, MoreSamples, Reader
from hopscope.runtime.types import Generation, GenerationRequest
from hopscope.tracing.asking import asking
from hopscope.tracing.asking.asking import Content, Unmeasured
from hopscope.tracing.beliefs import belief
from hopscope.tracing.beliefs.belief import Floats, Weighting
from hopscope.tracing.beliefs.beliefs import canonical, likelihoods, unseen
from hopscope.tracing.beliefs.enumeration import enumerate_answers
from hopscope.tracing.statistics.intervals import UnseenReplies


class Replies(NamedTuple):
    """The replies to one context with their weights."""

    samples: tuple[Generation, ...]
    weights: Floats
    """One for each sample; for an enumerated reply its probability, given that it was not cut off.
    These sum to less than 1."""
    uncovered: float | None = None
    """Probability of the replies that an enumeration did not reach; None for samples."""
    unseen: UnseenReplies | None = None
    """The bounds on replies that no sample showed; None for an enumeration and equal weights."""
    drawn: tuple[float, ...] = ()
    """The weights of all replies; those cut off are not in `samples`."""
    cut: float = 0.0
    """The share of the weight on replies that were cut off. Their meaning is unknown."""


class ReplySampler:
    """Samples replies to several contexts, a few more at each call."""

    def __init__(
        self, reader: Reader, asked: Mapping[Content, GenerationRequest], *, meter: str = "seper"
    ) -> None:
        """`meter` is the one whose options a reason names."""
        self._meter = meter
        self._reader = reader
        self._asked = asked
        self._drawn: dict[Content, list[Generation]] = {key: [] for key in asked}
        self._sizes: dict[Content, int] = dict.fromkeys(asked, 0)

    def size(self, context: Content) -> int:
        """The samples drawn for a context."""
        return self._sizes[context]

    def upto(
        self, size: int, contexts: Sequence[Content], weight: Weighting
    ) -> dict[Content, Replies | Unmeasured]:
        """The first `size` samples of each context, in canonical order, with their weights.

        Only missing samples are drawn. A context with more already, or one that was unmeasured, is
        not named again.
        """
        by_size: dict[int, list[Content]] = {}
        for key in contexts:
            by_size.setdefault(self._sizes[key], []).append(key)
        found: dict[Content, Replies | Unmeasured] = {}
        for first, keys in by_size.items():
            fresh = self._draw([self._asked[key] for key in keys], first, size)
            for key, samples in zip(keys, fresh, strict=True):
                self._sizes[key] = size
                found[key] = self._add(key, samples, weight)
        return {key: found[key] for key in contexts}

    def _draw(
        self, asked: Sequence[GenerationRequest], first: int, size: int
    ) -> Sequence[list[Generation] | Unmeasured]:
        requests = [request.model_copy(update={"n": size - first}) for request in asked]
        if first == 0:
            return asking.generate(self._reader, requests)
        assert isinstance(self._reader, MoreSamples)
        return self._reader.more(requests, first=first)

    def _add(
        self, key: Content, fresh: list[Generation] | Unmeasured, weight: Weighting
    ) -> Replies | Unmeasured:
        if isinstance(fresh, Unmeasured) or isinstance(fresh := asking.answered(fresh), Unmeasured):
            return fresh
        drawn = self._drawn[key] = [*self._drawn[key], *fresh]
        samples = canonical(drawn)
        logprobs = likelihoods(samples, weight, self._meter)
        if isinstance(logprobs, Unmeasured):
            return logprobs
        cut, asked = asking.cut_off(samples), self._asked[key]
        if 2 * cut > len(samples):
            return Unmeasured(
                f"{cut} of {len(samples)} replies were cut off after {asked.max_tokens} tokens, so "
                f"what they mean is not known; raise -o {self._meter}.max_tokens"
            )
        weights = belief.weights(logprobs, weight)
        whole = np.array([sample.finish_reason != "length" for sample in samples])
        share = float(weights[~whole].sum() / weights.sum()) if cut else 0.0
        # The weights of the replies with a known meaning sum to 1 again, but for raw weights.
        scale = 1.0 if weight == "raw" or not cut else 1 / weights[whole].sum()
        return Replies(
            tuple(compress(samples, whole)),
            weights[whole] * scale if cut else weights,
            unseen=unseen(samples, logprobs, weight, own=asked.temperature == 1),
            drawn=tuple(weights.tolist()),
            cut=share,
        )


def enumerated(
    reader: Reader, asked: Mapping[Content, GenerationRequest], *, bound: float, budget: int
) -> dict[Content, Replies | Unmeasured]:
    """The likeliest replies to each context with their probabilities.

    One context after the other, because the search reads the same prompt many times.
    """
    if not isinstance(reader, BranchingReader):
        reason = f"{reader.name} gives no next-token probabilities to enumerate; use method=sample"
        return dict.fromkeys(asked, Unmeasured(reason))
    return {
        key: _enumerated(reader, request, bound=bound, budget=budget)
        for key, request in asked.items()
    }


def _enumerated(
    reader: BranchingReader, request: GenerationRequest, *, bound: float, budget: int
) -> Replies | Unmeasured:
    try:
        result = enumerate_answers(reader, request, bound=bound, budget=budget)
    except ContextOverflowError as error:
        return asking.overflow(request.prompt, error)
    except CapabilityError as error:
        return Unmeasured(f"{error}; give it one thought (thinking=once), or none (thinking=off)")
    cut = fsum(answer.probability for answer in result.cut)
    if cut > 0.5:
        return Unmeasured(
            f"replies of probability {cut:.2f} are cut off after {request.max_tokens} tokens, so "
            "what they mean is not known; raise -o seper.max_tokens"
        )
    if not result.answers:
        return Unmeasured(
            f"no reply ended within {result.tokens} tokens read; raise budget or lower max_tokens"
        )
    # As with samples, the belief is that of the replies with a known meaning.
    return Replies(
        samples=tuple(Generation(text=answer.text) for answer in result.answers),
        weights=np.array([answer.probability for answer in result.answers]) / (1 - cut),
        uncovered=result.uncovered,
        drawn=tuple(answer.probability for answer in (*result.answers, *result.cut)),
        cut=cut,
    )
