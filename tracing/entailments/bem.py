"""Any classifier of answer equivalence that transformers can load, such as BEM.

It reads the answer, the gold answer and the question, and says whether the two answers are
equivalent: P(entailment) is the probability of that class, the rest is contradiction. The texts are
put in BEM's order: candidate, reference, question, the last two as one text with the model's own
separator between them. Of a pair that is too long only the candidate loses its end, as in EoR's
code. Which class means what is read from the model's `id2label`; of classes without names
(`LABEL_0`, `LABEL_1`) the second is equivalent, as in BEM.

Source: Bulian et al. 2022, "Tomayto, Tomahto. Beyond token-level answer equivalence" (arXiv
2202.07654).
"""

import os

from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.models.devices import Device
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
        equivalent: the class, 0 or 1, that means equivalent, where the model does not say so.

    Raises:
        UsageError: the model is not there, cannot be loaded, or nothing says which of its two
            classes means equivalent.
    """
    checkpoint = locate(model, revision)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # see runtime.readers.hf
    from hopscope.tracing.entailments._shared import shared
    from hopscope.tracing.pairs.classifier import load_equivalence

    found = load_equivalence(
        checkpoint, device=device, max_batch_tokens=max_batch_tokens, equivalent=equivalent
    )
    return shared(found, shortcut)
