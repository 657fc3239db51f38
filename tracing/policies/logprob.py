"""Retrieve while the draft's mean token log-probability, in nats, is low.

One of the plain uncertainty scores of AdaRAGUE's study (arXiv 2501.12835).
"""

from hopscope.runtime.components import LogProbability
from hopscope.runtime.ports import Policy, Reader
from hopscope.runtime.types import Generation
from hopscope.tracing.policies._gate import Gate
from hopscope.tracing.signals.draft import logprobs

ASKS = True
"""It cannot decide without a reader."""


def mean(draft: Generation, reader: Reader) -> float:
    values = logprobs(draft, reader)
    return sum(values) / len(values)


def build(*, threshold: LogProbability = -0.3) -> Policy:
    return Gate("logprob", threshold, mean, sure_above=True)
