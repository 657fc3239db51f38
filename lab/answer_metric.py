"""Answer metrics by name, as in `f1:spaced` or `bertscore:FOLDER,layer=9`."""

import inspect
from typing import TYPE_CHECKING, Any

from hopscope.api import given
from hopscope.api.given import EntailmentPart, ReaderPart
from hopscope.runtime.specs import Spec

if TYPE_CHECKING:
    from hopscope.tracing.scoring.metric import AnswerMetric


def answer_metric(
    named: Spec | str, *, reader: ReaderPart, entailment: EntailmentPart
) -> "AnswerMetric":
    """Build a metric; a `reader` and an `entailment` given by name are loaded if it needs them.

    Raises:
        UsageError: there is no such metric, option or model.
    """
    from hopscope.runtime import components
    from hopscope.tracing import answer_metrics

    build = components.named(answer_metrics, Spec.of(named))
    models: dict[str, Any] = {}
    wanted = inspect.signature(build).parameters
    if "reader" in wanted:
        models["reader"] = given.reader(reader)
    if "entailment" in wanted:
        models["entailment"] = given.entailment(entailment)
    built: AnswerMetric = build(**models)
    return built
