"""Retrieve while the draft's mean token log-probability, in nats, is low.

One of the plain uncertainty scores of AdaRAGUE's study (arXiv 2501.12835).
"""

from hopscope.runtime.ports import Policy, Reader
from hopscope.runtime.types import Generation
from hopscope.tracing.draft import logprobs
from hopscope.tracing.policies._gate import Gate


def mean(found: Generation, reader: Reader) -> float:
    told = logprobs(found, reader)
    return sum(told) / len(told)


def build(*, threshold: float = -0.3) -> Policy:
    return Gate("logprob", threshold, mean, sure_above=True)
