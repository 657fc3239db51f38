"""A local model as an entailment that threads and workflows share."""

import torch

from hopscope.runtime.ports import Entailment
from hopscope.tracing.pairs.gathered_entailment import GatheredEntailment
from hopscope.tracing.pairs.shortcuts import ShortcutRule, shortened
from hopscope.tracing.wrappers.cached import CachedEntailment


def shared(model: Entailment, shortcut: ShortcutRule) -> Entailment:
    """The model behind a cache and a batcher: it classifies the pairs of all threads together,
    each pair once, and no pair that the shortcut decides."""
    gathered = GatheredEntailment(model, deterministic=torch.are_deterministic_algorithms_enabled)
    return CachedEntailment(shortened(gathered, shortcut))
