"""Retrieve while the draft's mean token entropy, in nats, is high.

One of the plain uncertainty scores that win or tie in AdaRAGUE's study (arXiv 2501.12835).
"""

from hopscope.runtime.ports import Policy, Reader
from hopscope.runtime.types import Generation
from hopscope.tracing.draft import entropies
from hopscope.tracing.policies._gate import Gate


def mean(found: Generation, reader: Reader) -> float:
    told = entropies(found, reader)
    return sum(told) / len(told)


def build(*, threshold: float = 0.3) -> Policy:
    return Gate("entropy", threshold, mean, sure_above=False)
