"""Retrieve while the draft's mean token entropy, in nats, is high.

One of the plain uncertainty scores that win or tie in AdaRAGUE's study (arXiv 2501.12835).
"""

from hopscope.runtime.components import Nats
from hopscope.runtime.ports import Policy, Reader
from hopscope.runtime.types import Generation
from hopscope.tracing.policies._gate import Gate
from hopscope.tracing.signals.draft import entropies

ASKS = True
"""It cannot decide without a reader."""


def mean(draft: Generation, reader: Reader) -> float:
    values = entropies(draft, reader)
    return sum(values) / len(values)


def build(*, threshold: Nats = 0.3) -> Policy:
    return Gate("entropy", threshold, mean, sure_above=False)
