"""Checks an unknown kind of model against its own forward pass when it is loaded.

The check runs every use of cached keys and values (prompts of unequal length in one batch, rows
that become several, one or many tokens after a cached prefix) on a few tokens. It takes nine
passes, about as long as nine tokens of an answer.
"""

from typing import Any

import torch
from torch import Tensor

from hopscope.runtime.errors import UsageError
from hopscope.runtime.generation.forwarding import Forwarder
from hopscope.runtime.generation.prefill import PASS, Prefill, UnreadSequence
from hopscope.runtime.generation.prefixes import Tokens
from hopscope.runtime.generation.sampling import distribution
from hopscope.runtime.models.architecture import SERVE
from hopscope.runtime.models.batches import Size

LENGTHS = (19, 11)
"""Tokens of the two prompts."""
LIKELIEST = 20
"""Tokens whose log-probabilities are compared."""
TOLERANCE = 0.01
"""Tolerance for float32 in nats: the worst rounding of models that read in chunks."""
TOLERANCE_HALF = 0.2
"""Tolerance for 16 bits in nats, as a mean over the likeliest tokens."""


def compare(model: Any, name: str) -> None:
    """Raises:
    UsageError: with cached keys and values the model gives other results, or fails.
    """
    kind = model.config.model_type
    try:
        with torch.inference_mode():
            off = _difference(model)
    except (RuntimeError, ValueError, IndexError, TypeError, AttributeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(
            f"{name} is a {kind}, which does not compute in batches with keys and values: "
            f"{reason}; {SERVE}"
        ) from error
    allowed = TOLERANCE if model.dtype == torch.float32 else TOLERANCE_HALF
    if not off <= allowed:  # which may be no number
        raise UsageError(
            f"{name} is a {kind}, whose log-probabilities change by {off:.2g} nats with cached "
            f"keys and values, which sampling needs; {SERVE}"
        )


def _difference(model: Any) -> float:
    """The largest difference between results with and without a cache."""
    size = model.config.get_text_config().vocab_size
    step = max(1, size // 97)

    def some(count: int) -> Tokens:
        return tuple((7 + step * (3 * i + count)) % size for i in range(count))

    prompts = [some(length) for length in LENGTHS]
    after = [(0, 11 % size), (0, 5 % size), (1, 11 % size)]
    prefill = Prefill(Forwarder(model), 0)
    wanted = [UnreadSequence(prompt) for prompt in prompts]
    passes = prefill.read(wanted)
    parents = [place for place, _ in after]
    cache = prefill.rows(passes, wanted, parents, Size(LENGTHS[0] + 1, len(after)))
    ids = torch.tensor([[token] for _, token in after], device=model.device)
    forwarder = Forwarder(model)
    mask = forwarder.mask([LENGTHS[place] + 1 for place in parents])
    kept = forwarder.forward(ids, mask, cache, keep=1)[:, -1]
    apart = [
        _apart(logits, _alone(model, (*prompts[place], token)))
        for logits, (place, token) in zip(kept, after, strict=True)
    ]
    prefill = Prefill(Forwarder(model), 1 << 30)
    if prefill.tree.limit:  # else nothing is read from where it parts
        begun = some(PASS + 1)  # fewer would be read again
        prefill.read([UnreadSequence(begun)])
        longer = [(*begun, *prompts[0][:8]), (*begun, *prompts[1][:3])]
        [made] = prefill.read([UnreadSequence(ids) for ids in longer])
        for place, logits in zip(made.members, made.logits, strict=True):
            apart.append(_apart(logits[-1], _alone(model, longer[place])))
    return max(apart)


def _alone(model: Any, ids: Tokens) -> Tensor:
    logits: Tensor = model(
        input_ids=torch.tensor([ids], device=model.device), use_cache=False
    ).logits
    return logits[0, -1]


def _apart(one: Tensor, other: Tensor) -> float:
    logprobs, _ = distribution(torch.stack([one, other]))
    likeliest = logprobs[1].topk(min(LIKELIEST, logprobs.shape[1])).indices
    apart = (logprobs[0] - logprobs[1])[likeliest].abs()
    return float(apart.max() if one.dtype == torch.float32 else apart.mean())
