"""Any MNLI classifier that transformers can load: SePer's and semantic entropy's entailment.

Both papers use microsoft/deberta-v2-xlarge-mnli. Premise and hypothesis are question and answer
in one line, as in SePer's code: "Who sang it? Linda Davis". The model's own `id2label` names the
outputs, because models disagree about their order.
"""

from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.models.devices import Device, Precision
from hopscope.runtime.models.processor import settle_processor
from hopscope.runtime.ports import Entailment, Statement
from hopscope.tracing.pairs.shortcuts import ShortcutRule


def build(
    *,
    model: str,
    revision: str | None = None,
    device: Device = "auto",
    max_batch_tokens: int = 16_384,
    shortcut: ShortcutRule = "none",
    precision: Precision = "single",
) -> Entailment:
    """An entailment model over a sequence classifier with safetensors weights. It classifies each
    pair of texts once.

    Args:
        model: a folder saved with `save_pretrained`, or a hub id (downloaded if not in the cache).
        revision: the hub's branch, tag or commit.
        device: `auto` takes CUDA, then Apple's GPU, then the processor.
        max_batch_tokens: rows times positions computed together; bounds the memory used.
        shortcut: the pairs to decide without the model: `none`; `exact`, equal answers;
            `containment`, also a hypothesis that the premise contains.
        precision: `single`; for DeBERTa on the processor two approximations: `bfloat16`, three
            times as fast where the processor has units for its matrices (AMX), half as fast again
            where it has only dot products of them; `eight-bits`, whole numbers, about twice as fast
            and less exact, where it has dot products of them (VNNI).

    Raises:
        UsageError: the model does not exist, cannot be loaded, or has other classes than
            entailment, neutral and contradiction.
    """
    checkpoint = locate(model, revision)
    settle_processor()
    from hopscope.tracing.entailments._shared import shared
    from hopscope.tracing.pairs.classifier import load

    found = load(
        checkpoint,
        texts=statement_texts,
        device=device,
        max_batch_tokens=max_batch_tokens,
        precision=precision,
    )
    return shared(found, shortcut)


def statement_texts(statement: Statement) -> tuple[str, str]:
    """Premise and hypothesis as the model reads them."""
    question = statement.question.strip()
    if question and not question.endswith("?"):
        question += "?"
    return f"{question} {statement.premise}".strip(), f"{question} {statement.hypothesis}".strip()
