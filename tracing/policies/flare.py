"""Retrieve while some token of the draft is less probable than a threshold.

The condition of FLARE (arXiv 2305.06983) as a policy of any workflow: FLARE tests the next
sentence, this policy the short answer from the evidence so far.
"""

from math import exp

from hopscope.runtime.components import Share
from hopscope.runtime.ports import Policy, Reader
from hopscope.runtime.types import Generation
from hopscope.tracing.policies._gate import Gate
from hopscope.tracing.signals.draft import logprobs

ASKS = True
"""It cannot decide without a reader."""


def least(draft: Generation, reader: Reader) -> float:
    return exp(min(logprobs(draft, reader)))


def build(*, threshold: Share = 0.8) -> Policy:
    return Gate("flare", threshold, least, sure_above=True)
