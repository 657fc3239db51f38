"""Metrics of answers as users name them, `NAME` or `NAME:VALUE`."""

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopscope.cli import wiring

if TYPE_CHECKING:
    from hopscope.tracing.answer_metrics._metric import AnswerMetric

MetricSpec = Annotated[
    str,
    typer.Option(
        "--metric",
        "-m",
        metavar="NAME[:VALUE]",
        help="How answers are judged: see `hopscope list metrics`. The value is for the metric's "
        "first option, as in f1:spaced or bertscore:FOLDER.",
        envvar="HOPSCOPE_METRIC",
    ),
]


def metric(spec: str, *, reader: str, entailment: str) -> "AnswerMetric":
    """Build a metric; `reader` and `entailment` are loaded if it asks a model.

    Raises:
        UsageError: there is no such metric, or its value cannot be used.
    """
    from hopscope.runtime import components
    from hopscope.runtime.errors import UsageError
    from hopscope.tracing import answer_metrics

    name, given, value = spec.partition(":")
    build: Any = components.load(answer_metrics, name).build
    options = components.options(build)
    first = next(iter(options), None)
    if given and first is None:
        raise UsageError(f"--metric {spec}: {name} takes nothing after its name")
    if first and not value and options[first].default is inspect.Parameter.empty:
        raise UsageError(f"--metric {spec}: give its {first}, as in {name}:{first.upper()}")
    resolved = components.parse_options(build, {first: value} if first and given else {})
    ports: dict[str, Any] = {}
    wanted = inspect.signature(build).parameters
    if "reader" in wanted:
        ports["reader"] = wiring.reader(reader)
    if "entailment" in wanted:
        ports["entailment"] = wiring.entailment(entailment)
    built: AnswerMetric = build(**ports, **resolved)
    return built
