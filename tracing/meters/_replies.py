"""What a reader replies to each context: samples, as many as are needed, or an enumeration."""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import NamedTuple, cast

import numpy as np

from hopscope.runtime.errors import ContextOverflow, NotOffered
from hopscope.runtime.ports import BranchingReader, MoreSamples, Reader
from hopscope.runtime.types import Generation, GenerationRequest
from hopscope.tracing import belief
from hopscope.tracing.belief import Floats, Weighting
from hopscope.tracing.enumeration import enumerate_answers
from hopscope.tracing.intervals import Unseen
from hopscope.tracing.meters import _asking
from hopscope.tracing.meters._asking import Content, Unmeasured
from hopscope.tracing.meters._beliefs import canonical, likelihoods, unseen


class Replies(NamedTuple):
    """The replies to one context and what each weighs."""

    samples: tuple[Generation, ...]
    weights: Floats
    """Of each sample; the probability of each enumerated reply, which sum to less than 1."""
    uncovered: float | None = None
    """Probability of the replies that an enumeration did not reach; None for samples."""
    unseen: Unseen | None = None
    """What samples leave open about other replies; None of an enumeration and of equal weights."""
    drawn: tuple[float, ...] = ()
    """The weights of all samples; those that were cut off are not in `samples`."""
    cut: float = 0.0
    """The share that those cut off have of the weight of all. Their meaning is not known."""


class Sampled:
    """Samples of several contexts, drawn in as many goes as asked for."""

    def __init__(
        self, reader: Reader, asked: Mapping[Content, GenerationRequest], *, meter: str = "seper"
    ) -> None:
        """`meter` is whose options a reason names."""
        self._meter = meter
        self._reader = reader
        self._asked = asked
        self._drawn: dict[Content, list[Generation]] = {key: [] for key in asked}
        self._size = 0

    def upto(
        self, size: int, contexts: Sequence[Content], weight: Weighting
    ) -> dict[Content, Replies | Unmeasured]:
        """The first `size` samples of each context, in canonical order, with their weights.

        Every context was in all earlier calls too; only what is missing is drawn.
        """
        requests = [
            self._asked[key].model_copy(update={"n": size - self._size}) for key in contexts
        ]
        fresh: Sequence[list[Generation] | Unmeasured]
        if self._size == 0:
            fresh = _asking.generate(self._reader, requests)
        else:
            fresh = cast(MoreSamples, self._reader).more(requests, first=self._size)
        self._size = size
        return {
            key: self._add(key, samples, weight)
            for key, samples in zip(contexts, fresh, strict=True)
        }

    def _add(
        self, key: Content, fresh: list[Generation] | Unmeasured, weight: Weighting
    ) -> Replies | Unmeasured:
        if isinstance(fresh, Unmeasured) or isinstance(
            fresh := _asking.answered(fresh), Unmeasured
        ):
            return fresh
        drawn = self._drawn[key] = [*self._drawn[key], *fresh]
        samples = canonical(drawn)
        logprobs = likelihoods(samples, weight, self._meter)
        if isinstance(logprobs, Unmeasured):
            return logprobs
        cut, asked = _asking.cut_off(samples), self._asked[key]
        if 2 * cut > len(samples):
            return Unmeasured(
                f"{cut} of {len(samples)} replies were cut off after {asked.max_tokens} tokens, so "
                f"what they mean is not known; raise -o {self._meter}.max_tokens"
            )
        weights = belief.weights(logprobs, weight)
        whole = np.array([sample.finish_reason != "length" for sample in samples])
        share = float(weights[~whole].sum() / weights.sum()) if cut else 0.0
        # The belief is that of the replies whose meaning is known, to which raw weights do not sum.
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

    One context after the other, as the search comes back to the same prompt many times.
    """
    if not callable(getattr(reader, "branch", None)):
        reason = f"{reader.name} gives no next-token probabilities to enumerate; use method=sample"
        return dict.fromkeys(asked, Unmeasured(reason))
    branching = cast(BranchingReader, reader)
    return {
        key: _enumerated(branching, request, bound=bound, budget=budget)
        for key, request in asked.items()
    }


def _enumerated(
    reader: BranchingReader, request: GenerationRequest, *, bound: float, budget: int
) -> Replies | Unmeasured:
    try:
        found = enumerate_answers(reader, request, bound=bound, budget=budget)
    except ContextOverflow as error:
        return _asking.overflow(request, error)
    except NotOffered as error:
        return Unmeasured(f"{error}; give it one thought (thinking=once), or none (--thinking off)")
    if not found.answers:
        return Unmeasured(
            f"no reply ended within {found.tokens} tokens read; raise budget or lower max_tokens"
        )
    return Replies(
        samples=tuple(Generation(text=answer.text) for answer in found.answers),
        weights=np.array([answer.probability for answer in found.answers]),
        uncovered=found.uncovered,
    )
