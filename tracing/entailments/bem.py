"""Any classifier of answer equivalence that transformers can load, such as BEM.

The model reads the answer, the gold answer and the question and classifies the two answers as
equivalent or not. P(entailment) is the probability of the class "equivalent"; the rest is
contradiction. The texts stand in BEM's order: candidate, then reference and question as one text
with the model's own separator between them. If a pair is too long, only the candidate is cut, as in
EoR's code. The model's `id2label` names the classes; of classes without names (`LABEL_0`,
`LABEL_1`) the second means equivalent, as in BEM.

Source: Bulian et al. 2022, "Tomayto, Tomahto. Beyond token-level answer equivalence" (arXiv
2202.07654).
"""

from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.models.devices import Device
from hopscope.runtime.models.processor import settle_processor
from hopscope.runtime.ports import Entailment
from hopscope.tracing.pairs.shortcuts import ShortcutRule


def build(
    *,
    model: str,
    revision: str | None = None,
    device: Device = "auto",
    max_batch_tokens: int = 16_384,
    shortcut: ShortcutRule = "none",
    equivalent: int | None = None,
) -> Entailment:
    """A judge of answers over a classifier with two classes and safetensors weights.

    Args:
        model, revision, device, max_batch_tokens, shortcut: as in `nli`.
        equivalent: the class that means equivalent, 0 or 1, if the model does not name it.

    Raises:
        UsageError: the model does not exist or cannot be loaded, or neither it nor the argument
            names the class that means equivalent.
    """
    checkpoint = locate(model, revision)
    settle_processor()
    from hopscope.tracing.entailments._shared import shared
    from hopscope.tracing.pairs.classifier import load_equivalence

    found = load_equivalence(
        checkpoint, device=device, max_batch_tokens=max_batch_tokens, equivalent=equivalent
    )
    return shared(found, shortcut)
