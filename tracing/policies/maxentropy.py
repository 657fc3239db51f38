"""Retrieve while the highest token entropy of the draft, in nats, is high.

One of the plain uncertainty scores of AdaRAGUE's study (arXiv 2501.12835).
"""

from hopscope.runtime.components import Nats
from hopscope.runtime.ports import Policy, Reader
from hopscope.runtime.types import Generation
from hopscope.tracing.policies._gate import Gate
from hopscope.tracing.signals.draft import entropies

ASKS = True
"""It cannot decide without a reader."""


def highest(draft: Generation, reader: Reader) -> float:
    return max(entropies(draft, reader))


def build(*, threshold: Nats = 0.7) -> Policy:
    return Gate("maxentropy", threshold, highest, sure_above=False)
