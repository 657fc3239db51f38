"""TARG: retrieve while the margin between first and second token of the draft is small.

TARG (arXiv 2511.09803) drafts a prefix without context once; here the draft is the short answer
from the evidence so far, before each retrieval. The margin is a lower bound, see
`tracing.signals.draft.margin`.
"""

from hopscope.runtime.components import Share
from hopscope.runtime.ports import Policy
from hopscope.tracing.policies._gate import Gate
from hopscope.tracing.signals.draft import margin

ASKS = True
"""It cannot decide without a reader."""


def build(*, threshold: Share = 0.7) -> Policy:
    return Gate("margin", threshold, margin, sure_above=True)
