"""The content of a run's page: its report, with the texts of passages and marks for the eye."""

from collections.abc import Mapping
from typing import Any

from hopscope.api.views.run_table import money
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Run, Step
from hopscope.tracing.reports.displays import display, leading
from hopscope.tracing.reports.shown import passages_by_key
from hopscope.view import links
from hopscope.view.html import Drawn
from hopscope.view.run_figures import FIGURES, RunRecords

NOTHING = 0.01
"""A change of the leading meter below this is no change."""
DEAR = 0.2
"""The share of the run's tokens from which a step is dear."""


def content(records: RunRecords) -> dict[str, Any]:
    """The values of the template `run_content.html`."""
    report = records.report
    return {
        "title": report["question"],
        "report": report,
        "steps": steps(records),
        "figures": figures(records),
        "what_if": records.recalls,
        "contexts": contexts(report),
        "answer_tokens": _answer_tokens(report),
    }


def contexts(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The answers behind the values, each with the name of its step; empty if none are stored."""
    names = {step["index"]: f"{step['index']} {step['name']}" for step in report["steps"]}
    found = [
        {
            **context,
            "name": names.get(context["step"], "closed book"),
            "key_tokens": [
                token["text"].strip() for token in context["tokens"] or () if token["key"]
            ],
        }
        for context in report["contexts"]
    ]
    return found if report["appraisal"] else []


def _answer_tokens(report: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The tokens of the run's answer, where it is the one that GroGU measured last."""
    last = next((c["tokens"] for c in reversed(report["contexts"]) if c["tokens"]), None)
    text = "".join(token["text"] for token in last or ()).strip()
    return last if last and text == (report["answer"] or "").strip() else None


def figures(records: RunRecords, *, linked: bool = True) -> list[Drawn]:
    """The pictures that the run has records for; `linked` where its steps are on the same page."""
    found = []
    for name, make in FIGURES.items():
        try:
            found.append(Drawn(name, make(records), links.of_run if linked else None))
        except UsageError:  # this run was not measured for it
            continue
    return found


def steps(records: RunRecords) -> list[dict[str, Any]]:
    """The steps of the report, each with its mark, its decision and the texts of its passages."""
    report, run = records.report, records.run
    measured = [m for s in report["steps"] for m, credit in s["credit"].items() if credit]
    meter = leading(measured) or "seper"
    texts = {key: passage.text for key, passage in passages_by_key(run).items()}
    shares = _shares(records, meter)
    costs = _costs(run)
    found = []
    for step, told in zip(run.steps, report["steps"], strict=True):
        passages = [
            {
                **passage,
                "text": texts.get(passage["id"], ""),
                "mark": _placed(step, passage["id"]),
                "share": shares.get((step.index, passage["id"])),
            }
            for passage in told["passages"]
        ]
        decision = step.decision.model_dump(mode="json") if step.decision else None
        mark = _mark(step, told, meter, costs[step.index], run.usage.tokens)
        found.append(
            {
                **told,
                "passages": passages,
                "decision": decision,
                "mark": mark,
                "changes": _changes(told),
                "money": money(told["cost"], report["total"]["currency"]) if told["cost"] else None,
            }
        )
    return found


def _changes(told: Mapping[str, Any]) -> list[str]:
    """What each meter says of the step: its change, else its Shapley share."""
    found = []
    for meter, credit in told["credit"].items():
        heading = display(meter).heading
        change = _change(credit)
        if change is not None:
            around = ""
            if credit.get("delta") is not None and credit.get("low") is not None:
                around = f" [{credit['low']:.2f}, {credit['high']:.2f}]"
            found.append(f"{heading} {change:+.2f}{around}")
        elif credit and credit.get("reason"):
            found.append(f"{heading} not measured: {credit['reason']}")
    return found


def _change(credit: Mapping[str, Any] | None) -> float | None:
    if not credit:
        return None
    change: float | None = credit.get("delta")
    return credit.get("shapley") if change is None else change


def _placed(step: Step, key: str) -> str:
    """Whether a hit is new evidence, was there already, or was cut."""
    if key in step.new:
        return "new"
    return "already there" if any(p.key == key for p in step.evidence) else "cut"


def _mark(step: Step, told: Mapping[str, Any], meter: str, cost: int, total: int) -> str:
    change = _change(told["credit"].get(meter))
    if change is None or not step.retrieved:
        return "plain"
    if abs(change) < NOTHING:
        return "wasted" if total and cost >= DEAR * total else "idle"
    return "helped" if change > 0 else "harmed"


def _costs(run: Run) -> dict[int, int]:
    """Tokens of each step; of a retrieval also those of the steps up to the next one."""
    found: dict[int, int] = {}
    last = None
    for step in run.steps:
        found[step.index] = step.usage.tokens
        if step.retrieved:
            last = step.index
        elif last is not None:
            found[last] += step.usage.tokens
    return found


def _shares(records: RunRecords, meter: str) -> dict[tuple[int, str], float]:
    """Shapley credits of passages."""
    return {
        (row["step"], row["passage"]): row["value"]
        for row in records.credits
        if row["passage"] is not None
        and row["rule"] == "shapley"
        and row["meter"] == meter
        and row["value"] is not None
    }
