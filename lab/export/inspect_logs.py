"""An experiment as logs of inspect_ai, one for each workflow, which `inspect view` opens.

A sample is a question. Its messages are the question, the searches as calls of a tool, their
passages and the replies; its events are the same in time, a search with the credit of its step. Its
scores are those of the answer and the meters' values with all evidence; an unmeasured one is left
out, and the metadata tell why. The metadata hold the run's id and all its credits.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from hopscope import __version__
from hopscope.lab.export.rows import credit_rows
from hopscope.lab.export.sheets import whole
from hopscope.runtime.errors import MissingExtraError
from hopscope.runtime.types import Credit, Measurement, Run, Step, digest
from hopscope.store.experiments.records import Arm, Experiment, Item
from hopscope.store.experiments.result_rows import NOT_APPRAISED, ResultRow, Value
from hopscope.store.store import Store
from hopscope.tracing.scoring.metric import AnswerMetric, Case
from hopscope.tracing.statistics.averages import average

METRICS = ("exact_match", "f1", "contains")
SEARCH = "search"
"""The name of the tool that searches are calls of."""


def paths(experiment: Experiment, folder: Path) -> dict[str, Path]:
    """The file of each workflow by its label, named as inspect_ai names logs. It takes `%` in a
    name for a code, and `_` for the end of a part."""
    when = f"{experiment.created:%Y-%m-%dT%H-%M-%S}+00-00"
    return {
        arm.label: folder / f"{when}_{_plain(experiment, arm)}_{_id(experiment, arm)}.eval"
        for arm in experiment.arms
    }


def write(
    store: Store,
    experiment: Experiment,
    files: Mapping[str, Path],
    metrics: Sequence[AnswerMetric],
) -> None:
    """Write the finished items of each workflow to the path of its label.

    Args:
        metrics: of answers.

    Raises:
        MissingExtraError: inspect_ai is not installed.
        UsageError: a file cannot be written.
    """
    try:
        from inspect_ai import log as logs
    except ImportError:
        raise MissingExtraError("the export of inspect logs", "inspect") from None
    known = {row.run_id: row for row in store.experiments.result_rows(experiment.name)}
    complete = not (now := store.experiments.progress(experiment.name)).pending + now.running
    for arm in experiment.arms:
        done = [
            (item, store.load(item.outcome.run_id) if item.outcome else None)
            for item in store.experiments.items(experiment.name)
            if item.arm == arm.label and item.status in ("ok", "failed")
        ]
        scored = [_scores(item, run, known, metrics) for item, run in done]
        samples = [
            _sample(logs, experiment, item, run, measured, store.credits(run.id) if run else [])
            for (item, run), measured in zip(done, scored, strict=True)
        ]
        binary = {metric.name for metric in metrics if metric.binary}
        means = [
            _mean(logs, name, values, binary=name in binary)
            for name, values in _by_name(scored).items()
            if any(each.value is not None for each in values)
        ]
        written = _log(logs, experiment, arm, samples, means, complete=complete)
        with whole(files[arm.label]) as unfinished:
            logs.write_eval_log(written, str(unfinished), format="eval")


def _plain(experiment: Experiment, arm: Arm) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{experiment.name}-{arm.label}").strip("-")


def _id(experiment: Experiment, arm: Arm) -> str:
    return digest(experiment.name, arm.label, experiment.created.isoformat())[:22]


def _scores(
    item: Item,
    run: Run | None,
    known: Mapping[str | None, ResultRow],
    metrics: Sequence[AnswerMetric],
) -> dict[str, Measurement]:
    """The scores of an item, measured or not."""
    if run is None or item.status == "failed":
        missing = Measurement(value=None, reason="the run failed")
        return {metric.name: missing for metric in metrics}
    case = Case(run.question, run.answer, run.evidence)
    found = {metric.name: metric.score([case])[0] for metric in metrics}
    for meter, utility in known[run.id].utilities.items():
        found[meter] = _measurement(utility.level)
        found[f"{meter}_delta"] = _measurement(utility.delta)
    return found


def _measurement(value: Value) -> Measurement:
    if isinstance(value, str):
        return Measurement(value=None, reason=value)
    return Measurement(value=value)


def _log(
    logs: Any,
    experiment: Experiment,
    arm: Arm,
    samples: list[Any],
    means: list[Any],
    *,
    complete: bool,
) -> Any:
    id = _id(experiment, arm)
    return logs.EvalLog(
        status="success" if complete else "cancelled",
        eval=logs.EvalSpec(
            eval_id=id,
            run_id=id,
            task_id=id,
            created=experiment.created.isoformat(),
            task=experiment.name,
            task_args=experiment.settings,
            solver=arm.label,
            solver_args=arm.settings,
            dataset=logs.EvalDataset(
                name=str(experiment.settings.get("data") or experiment.name),
                samples=len(samples),
                sample_ids=[sample.id for sample in samples],
            ),
            model=experiment.reader,
            config=logs.EvalConfig(epochs=1),
            packages={"hopscope": __version__},
            metadata={
                "retriever": experiment.retriever,
                "entailment": experiment.entailment,
                "seed": str(experiment.seed),
            },
        ),
        plan=logs.EvalPlan(name=arm.workflow, steps=[]),
        results=logs.EvalResults(
            total_samples=len(samples),
            completed_samples=sum(sample.error is None for sample in samples),
            scores=means,
        ),
        samples=samples,
    )


def _by_name(scored: Sequence[Mapping[str, Measurement]]) -> dict[str, list[Measurement]]:
    """The values of all samples by the name of the score."""
    missing = Measurement(value=None, reason=NOT_APPRAISED)
    names = dict.fromkeys(name for each in scored for name in each)
    return {name: [each.get(name, missing) for each in scored] for name in names}


def _mean(logs: Any, name: str, values: Sequence[Measurement], *, binary: bool) -> Any:
    found = average(values, binary=binary)
    return logs.EvalScore(
        name=name,
        scorer=name,
        scored_samples=found.measured,
        unscored_samples=found.total - found.measured,
        metrics={
            "mean": logs.EvalMetric(
                name="mean",
                value=found.value,
                metadata={"low": found.low, "high": found.high, "interval": found.interval},
            )
        },
    )


def _sample(
    logs: Any,
    experiment: Experiment,
    item: Item,
    run: Run | None,
    scores: Mapping[str, Measurement],
    credits: Sequence[Credit],
) -> Any:
    from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage
    from inspect_ai.scorer import Score

    question, outcome = item.question, item.outcome
    error = item.error or (run.error if run else None)
    unmeasured: dict[str, JsonValue] = {
        name: measured.reason for name, measured in scores.items() if measured.value is None
    }
    messages: list[Any] = [ChatMessageUser(id=f"{item.entry.hash[:16]}-0", content=question.text)]
    events: list[Any] = []
    if run is not None:
        for step in run.steps:
            for added, event in _turn(run, step, credits, list(messages)):
                messages += added
                events.append(event)
    return logs.EvalSample(
        id=question.id or item.entry.hash[:16],
        epoch=1,
        input=question.text,
        target=list(question.answers),
        messages=messages,
        output=ModelOutput.from_content(experiment.reader, (outcome and outcome.answer) or ""),
        scores={
            name: Score(value=measured.value, answer=outcome and outcome.answer)
            for name, measured in scores.items()
            if measured.value is not None
        },
        metadata={
            "workflow": item.arm,
            "run": run.id if run else None,
            "kind": item.entry.kind or None,
            "hops": item.entry.hops,
            "stop_reason": run.stop_reason if run else None,
            "unmeasured": unmeasured,
            "credits": to_jsonable_python(list(credit_rows(run, credits)) if run else []),
        },
        events=events,
        model_usage={
            experiment.reader: ModelUsage(
                input_tokens=run.usage.input_tokens,
                output_tokens=run.usage.output_tokens,
                total_tokens=run.usage.tokens,
            )
        }
        if run and not run.usage.uncounted
        else {},
        started_at=run.started.isoformat() if run else None,
        completed_at=(run.started + timedelta(seconds=run.seconds)).isoformat() if run else None,
        total_time=run.seconds if run else None,
        error=logs.EvalError(
            message=f"{error.type}: {error.message}", traceback="", traceback_ansi=""
        )
        if error
        else None,
    )


def _turn(
    run: Run, step: Step, credits: Sequence[Credit], before: list[Any]
) -> Iterator[tuple[list[Any], Any]]:
    """The messages and the event of a step: of a search, of a reply, or none."""
    from inspect_ai.event import ModelEvent, ToolEvent
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, GenerateConfig, ModelOutput
    from inspect_ai.tool import ToolCall

    id = f"{run.id[:16]}-{step.index}"
    times = {
        "timestamp": step.started,
        "completed": step.started + timedelta(seconds=step.seconds),
        "working_time": step.seconds,
    }
    metadata = {
        "step": step.name,
        "credits": to_jsonable_python(
            list(credit_rows(run, (credit for credit in credits if credit.step == step.index)))
        ),
    }
    if step.query is not None:
        arguments = {"query": step.query}
        found = "\n\n".join(
            f"[{hit.passage.key}] {hit.passage.title}\n{hit.passage.text}" for hit in step.ranked
        )
        call = ToolCall(id=id, function=SEARCH, arguments=arguments)
        yield (
            [
                ChatMessageAssistant(id=f"{id}-call", content="", tool_calls=[call]),
                ChatMessageTool(id=f"{id}-found", content=found, tool_call_id=id, function=SEARCH),
            ],
            ToolEvent(
                id=id,
                function=SEARCH,
                arguments=arguments,
                result=found,
                metadata=metadata,
                **times,
            ),
        )
    elif step.output:
        yield (
            [ChatMessageAssistant(id=id, content=step.output, model=run.reader)],
            ModelEvent(
                model=run.reader,
                input=before,
                tools=[],
                tool_choice="none",
                config=GenerateConfig(),
                output=ModelOutput.from_content(run.reader, step.output),
                metadata=metadata,
                **times,
            ),
        )
