"""The attributes of the spans of runs and steps, from their records."""

from collections.abc import Mapping

from pydantic import JsonValue

from hopscope.runtime.spans import content as content
from hopscope.runtime.spans import keys as keys
from hopscope.runtime.spans.content import Attributes, text
from hopscope.runtime.types import Decision, Question, Run, Step, StepKind


def begun(
    run_id: str,
    name: str,
    question: Question,
    options: Mapping[str, JsonValue],
    *,
    capture: bool,
) -> Attributes:
    """What is known of a run when it begins."""
    attributes: Attributes = {
        keys.SPAN_KIND: keys.CHAIN,
        keys.OPERATION: keys.INVOKE_WORKFLOW,
        keys.WORKFLOW_NAME: text(name),
        keys.RUN_ID: run_id,
        keys.RUN_OPTIONS: content.options(options, capture=capture),
    }
    if question.id:
        attributes[keys.QUESTION_ID] = text(question.id)
    if capture:
        attributes[keys.INPUT_VALUE] = text(question.text)
        attributes[keys.INPUT_MIME_TYPE] = keys.TEXT
    return attributes


def ended(run: Run, *, capture: bool) -> Attributes:
    """What is known of a run when it has ended."""
    attributes: Attributes = {
        keys.RUN_STATUS: run.status,
        keys.RUN_SEED: run.seed,
        keys.RUN_READER: text(run.reader),
        keys.RUN_RETRIEVER: text(run.retriever),
        keys.RUN_STEPS: len(run.steps),
        keys.RETRIEVED: sum(len(step.ranked) for step in run.steps),
        **content.spent(run.usage),
    }
    if run.stop_reason is not None:
        attributes[keys.STOP_REASON] = run.stop_reason
    if capture and run.answer is not None:
        attributes[keys.OUTPUT_VALUE] = text(run.answer)
        attributes[keys.OUTPUT_MIME_TYPE] = keys.TEXT
    if run.error is not None:
        attributes[keys.ERROR_TYPE] = run.error.type
    return attributes


def failure(run: Run, *, capture: bool) -> str | None:
    """The status text of a run that an error ended; None for another."""
    if run.error is None:
        return None
    return text(f"{run.error.type}: {run.error.message}" if capture else run.error.type)


def identity(name: str, kind: StepKind, index: int) -> Attributes:
    """Which step it is."""
    return {
        keys.SPAN_KIND: keys.CHAIN,
        keys.GRAPH_NODE_ID: name,
        keys.GRAPH_NODE_NAME: name,
        keys.STEP_INDEX: index,
        keys.STEP_KIND: kind,
    }


def done(step: Step, *, capture: bool) -> Attributes:
    """What a step did."""
    attributes: Attributes = {
        keys.STEP_NEW: [text(key) for key in step.new],
        keys.STEP_SHOWN: [text(key) for key in step.shown],
        keys.STEP_EVIDENCE: [text(passage.key) for passage in step.evidence],
        keys.RETRIEVED: len(step.ranked),
        **content.spent(step.usage),
    }
    if step.parse_ok is not None:
        attributes[keys.STEP_PARSE_OK] = step.parse_ok
    if step.stop_reason is not None:
        attributes[keys.STOP_REASON] = step.stop_reason
    if capture and step.query is not None:
        attributes[keys.INPUT_VALUE] = text(step.query)
        attributes[keys.INPUT_MIME_TYPE] = keys.TEXT
    if capture and step.output is not None:
        attributes[keys.OUTPUT_VALUE] = text(step.output)
        attributes[keys.OUTPUT_MIME_TYPE] = keys.TEXT
    return attributes


def decided(decision: Decision) -> Attributes:
    """A decision as attributes of an event, with one attribute for each signal."""
    own = decision.model_dump(exclude={"signals", "usage"}, exclude_none=True)
    attributes: Attributes = {f"{keys.DECISION}.{name}": own[name] for name in own}
    for name, value in decision.signals.items():
        attributes[f"{keys.DECISION}.signal.{name}"] = value
    return {**attributes, **content.spent(decision.usage)}
