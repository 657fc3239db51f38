"""Answer metrics by name, as in `f1:spaced` or `bertscore:FOLDER,layer=9`."""

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from hopscope.api import given, parts
from hopscope.api.given import EntailmentPart, ReaderPart
from hopscope.runtime.specs import Spec

if TYPE_CHECKING:
    from collections.abc import Callable

    from hopscope.runtime.ports import Reader
    from hopscope.tracing.scoring.metric import AnswerMetric


def answer_metric(
    named: Spec | str,
    *,
    reader: ReaderPart,
    entailment: EntailmentPart,
    wrap: "Callable[[Reader], Reader] | None" = None,
    prompts: str | None = None,
) -> "AnswerMetric":
    """Build a metric; a `reader` and an `entailment` given by name are loaded if it needs them.

    Args:
        wrap: applied to the reader.
        prompts: a set of prompts, or its folder, of metrics and entailments that ask a model; those
            that a name has hold.

    Raises:
        UsageError: there is no such metric, option or model, or a prompt cannot be used.
    """
    build = _build(named)
    if prompts and not build.keywords.get(parts.PROMPTS, True):
        build = partial(build, **{parts.PROMPTS: prompts})
    models: dict[str, Any] = {}
    wanted = inspect.signature(build).parameters
    if "reader" in wanted:
        loaded = given.reader(reader)
        models["reader"] = wrap(loaded) if wrap else loaded
    if "entailment" in wanted:
        if isinstance(entailment, str):
            entailment = parts.judging(entailment, prompts)
        models["entailment"] = given.entailment(entailment)
    built: AnswerMetric = build(**models)
    return built


def check(named: Spec | str) -> None:
    """Report mistakes in a metric's name and options before anything is loaded.

    Raises:
        UsageError: there is no such metric or option.
    """
    _build(named)


def _build(named: Spec | str) -> "partial[Any]":
    from hopscope.runtime import components
    from hopscope.tracing import answer_metrics

    return components.named(answer_metrics, Spec.of(named))
