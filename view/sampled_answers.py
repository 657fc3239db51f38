"""Answers sampled from a reader after each step of a run, grouped by meaning.

For runs whose measurement stored none: the reader gives the same ones again, because each is drawn
from the seed of the measurement. Weights and groups are those of SePer (`tracing.beliefs`).
"""

from typing import Any

from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Entailment, Reader
from hopscope.runtime.texts.answers import exact_match
from hopscope.runtime.types import Passage, Provenance, Run
from hopscope.tracing.asking import asking
from hopscope.tracing.beliefs.sampled_replies import Replies, ReplySampler
from hopscope.tracing.beliefs.semantic_entropy import masses
from hopscope.tracing.pairs.relations import Relations, clusters
from hopscope.view.pictures import answers
from hopscope.view.pictures.specification import Spec

MAX_TOKENS = 64


def spec(run: Run, provenance: Provenance, reader: Reader, entailment: Entailment) -> Spec:
    """The picture of the answers sampled under the settings of a measurement.

    Raises:
        UsageError: another reader measured the run.
        ReaderError, EntailmentError: a model failed.
    """
    if reader.name != provenance.reader:
        raise UsageError(
            f"run {run.id[:12]} was measured by {provenance.reader}, not by {reader.name}: name "
            "that reader with --reader"
        )
    rows = sampled(run, provenance, reader, entailment)
    return answers.spec(rows, question=run.question.text)


def sampled(
    run: Run, provenance: Provenance, reader: Reader, entailment: Entailment
) -> list[dict[str, Any]]:
    """A row for each step and meaning: `order`, `step`, `answer`, `mass`, `gold`."""
    count = provenance.settings.get("samples")
    size = count if isinstance(count, int) else 10
    moments: list[tuple[str, tuple[Passage, ...]]] = [("closed book", ())]
    moments += [(f"{step.index} {step.name}", step.evidence) for step in run.steps]
    asked = asking.requests(
        run.question.text,
        [evidence for _, evidence in moments],
        n=size,
        temperature=1.0,
        max_tokens=MAX_TOKENS,
        seed=provenance.seed,
    )
    replies = ReplySampler(reader, asked).upto(size, list(asked), "lennorm")
    relations = Relations(entailment, run.question.text)
    known = {key: each for key, each in replies.items() if isinstance(each, Replies)}
    meanings = relations.settle(
        {
            key: clusters(
                [sample.text.strip() for sample in each.samples],
                relations,
                equivalence="bi",
                threshold=0.5,
                clustering="first-match",
            )
            for key, each in known.items()
        }
    )
    rows = []
    for order, (name, evidence) in enumerate(moments):
        key = asking.content(evidence)
        if key in known:
            groups = _groups(known[key], meanings[key], run.question.answers)
            rows += [{"order": order, "step": name, **group} for group in groups]
    return rows


def _groups(replies: Replies, meanings: list[int], golds: tuple[str, ...]) -> list[dict[str, Any]]:
    """The meanings of the replies to one context, each named by its heaviest reply."""
    found = []
    for number, mass in enumerate(masses(replies.weights, meanings)):
        own = [
            (float(weight), sample.text.strip())
            for weight, sample, meaning in zip(
                replies.weights, replies.samples, meanings, strict=True
            )
            if meaning == number
        ]
        right = any(exact_match(text, golds) for _, text in own)
        found.append({"answer": max(own)[1] or answers.EMPTY, "mass": float(mass), "gold": right})
    return found
