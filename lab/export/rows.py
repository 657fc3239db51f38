"""Runs, steps, decisions and credits as flat rows, which join on `run_id` and `step`.

The columns are a public contract, because scripts read them. An unmeasured value is None, with a
reason in the column beside it.
"""

from collections.abc import Iterable
from typing import Any, Literal

from hopscope.runtime.types import Credit, Run, Usage
from hopscope.store.experiments.records import Item
from hopscope.tracing.proxies import is_proxy

Row = dict[str, Any]
ColumnType = Literal["text", "integer", "number", "flag", "texts", "json"]
"""The type of a column: `texts` is a list of texts, `json` any value."""
Columns = dict[str, ColumnType]

RUNS: Columns = {
    "experiment": "text",
    "system": "text",
    "run_id": "text",
    "question_id": "text",
    "question": "text",
    "golds": "texts",
    "kind": "text",
    "hops": "integer",
    "status": "text",
    "error": "text",
    "answer": "text",
    "stop_reason": "text",
    "workflow": "text",
    "options": "json",
    "reader": "text",
    "retriever": "text",
    "seed": "text",
    "steps": "integer",
    "retrievals": "integer",
    "calls": "integer",
    "input_tokens": "integer",
    "output_tokens": "integer",
    "thinking_tokens": "integer",
    "started": "text",
    "seconds": "number",
}
STEPS: Columns = {
    "run_id": "text",
    "step": "integer",
    "name": "text",
    "kind": "text",
    "query": "text",
    "output": "text",
    "parse_ok": "flag",
    "stop_reason": "text",
    "ranked": "texts",
    "new": "texts",
    "shown": "texts",
    "dangling": "texts",
    "calls": "integer",
    "input_tokens": "integer",
    "output_tokens": "integer",
    "thinking_tokens": "integer",
    "seconds": "number",
}
DECISIONS: Columns = {
    "run_id": "text",
    "step": "integer",
    "policy": "text",
    "retrieve": "flag",
    "reason": "text",
    "retrieval": "integer",
    "stage": "text",
    "signals": "json",
    "predicted_gain": "number",
    "low": "number",
    "high": "number",
    "predicted_cost": "number",
    "price": "number",
    "calls": "integer",
    "input_tokens": "integer",
    "output_tokens": "integer",
    "thinking_tokens": "integer",
}
CREDITS: Columns = {
    "run_id": "text",
    "step": "integer",
    "passage": "text",
    "meter": "text",
    "rule": "text",
    "value": "number",
    "reason": "text",
    "low": "number",
    "high": "number",
    "certain": "flag",
    "n": "integer",
    "seed": "text",
    "estimator": "text",
    "reader": "text",
    "entailment": "text",
    "settings": "json",
    "settings_hash": "text",
    "proxy": "flag",
}
SHEETS: dict[str, Columns] = {
    "runs": RUNS,
    "steps": STEPS,
    "decisions": DECISIONS,
    "credits": CREDITS,
}


def run_row(experiment: str, item: Item, run: Run | None) -> Row:
    """A row of `RUNS`, also for an item that failed before it had a run."""
    error = item.error or (run.error if run else None)
    row: Row = {
        "experiment": experiment,
        "system": item.arm,
        "question_id": item.question.id,
        "question": item.question.text,
        "golds": list(item.question.answers),
        "kind": item.entry.kind or None,
        "hops": item.entry.hops,
        "status": item.status,
        "error": f"{error.type}: {error.message}" if error else None,
        "workflow": item.workflow,
    }
    if run is not None:
        row |= {
            "run_id": run.id,
            "answer": run.answer,
            "stop_reason": run.stop_reason,
            "options": run.options,
            "reader": run.reader,
            "retriever": run.retriever,
            "seed": str(run.seed),
            "steps": len(run.steps),
            "retrievals": len(run.retrievals),
            **_spent(run.usage),
            "started": run.started.isoformat(),
            "seconds": run.seconds if run.timed else None,
        }
    return {name: row.get(name) for name in RUNS}


def _spent(usage: Usage) -> Row:
    """Calls and tokens; None for tokens if not all were counted."""
    found = usage.model_dump()
    return found | {name: None for name in found if usage.uncounted and name.endswith("_tokens")}


def step_rows(run: Run) -> Iterable[Row]:
    """Rows of `STEPS`."""
    for step in run.steps:
        row: Row = {
            "run_id": run.id,
            "step": step.index,
            "ranked": [hit.passage.key for hit in step.ranked],
            **_spent(step.usage),
        }
        yield {name: row.get(name, getattr(step, name, None)) for name in STEPS}


def decision_rows(run: Run) -> Iterable[Row]:
    """Rows of `DECISIONS`, for steps with a decision only."""
    for step in run.steps:
        if step.decision is None:
            continue
        row: Row = {
            "run_id": run.id,
            "step": step.index,
            **step.decision.model_dump(),
            **_spent(step.decision.usage),
            "predicted_gain": step.decision.gain,
            "predicted_cost": step.decision.cost,
        }
        yield {name: row[name] for name in DECISIONS}


def credit_rows(run: Run, credits: Iterable[Credit]) -> Iterable[Row]:
    """Rows of `CREDITS` of a run. A run's credit has no step, a step's credit no passage. `reader`
    measured; `proxy` tells whether another one ran, None if that one is unknown."""
    for credit in credits:
        measured, provenance = credit.measurement, credit.provenance
        row: Row = {
            **credit.model_dump(include={"run_id", "step", "passage", "meter", "rule"}),
            **measured.model_dump(),
            "seed": None if measured.seed is None else str(measured.seed),
            "reader": provenance.reader,
            "entailment": provenance.entailment,
            "settings": provenance.settings,
            "settings_hash": provenance.settings_hash,
            "proxy": is_proxy(run.reader, provenance.reader),
        }
        yield {name: row[name] for name in CREDITS}
