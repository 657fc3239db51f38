"""The summary that `hopscope eval` prints at the end; `hopscope compare` has more tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

from rich.text import Text

from hopscope.api.views import render
from hopscope.api.views.grid import Column, Grid, numbers
from hopscope.cli.views import progress
from hopscope.lab.experiments.estimate import at_once
from hopscope.lab.experiments.tally import total
from hopscope.runtime.texts.counting import counted
from hopscope.store.experiments.appraisals import ORIGINAL
from hopscope.tracing.answer_metrics import exact_match
from hopscope.tracing.meters import DEFAULT_METERS
from hopscope.tracing.scoring.metric import Case

if TYPE_CHECKING:
    from pydantic import JsonValue

    from hopscope.lab.experiments.concurrency import Concurrency
    from hopscope.lab.experiments.estimate import CostEstimate
    from hopscope.lab.experiments.tally import Tally
    from hopscope.runtime.budget.prices import Price
    from hopscope.store.experiments.records import Experiment, Item
    from hopscope.store.store import Store

REASONS = 5
"""The largest number of kinds of failures printed."""


def show(tally: "Tally", price: "Price", name: str) -> None:
    render.out().print(progress.table(tally, price))
    shown = f"hopscope compare {quote(name)}"
    render.note(f"experiment {name} is stored; show its tables with `{shown}`")


def print_json(store: "Store", found: "Experiment") -> None:
    """Print settings, models and every item. Between two evaluations with one seed only fields
    named `created` or `seconds` differ."""
    items = store.experiments.items(found.name)
    credits = store.experiments.credits(
        found.name, rules=["total"], passages=False, appraisal=ORIGINAL
    )
    appraisals = store.experiments.appraisals(found.name)
    metric = exact_match.build()
    rows: list[dict[str, Any]] = []
    for item in items:
        outcome = item.outcome
        row: dict[str, Any] = {
            **item.entry.question.model_dump(mode="json"),
            "workflow": item.arm,
            "status": item.status,
            "error": item.error and item.error.model_dump(),
            "run": None,
        }
        if outcome is not None:
            measured = appraisals.get(outcome.run_id, [])
            [score] = metric.score([Case(item.question, outcome.answer)])
            given = credits.get(outcome.run_id, [])
            row["run"] = {
                **outcome.model_dump(mode="json", exclude={"started", "run_id"}),
                "id": outcome.run_id,
                "exact_match": score.model_dump(mode="json"),
                **{
                    f"{meter}_delta": measurement.model_dump(mode="json")
                    for meter in dict.fromkeys([*DEFAULT_METERS, *(c.meter for c in given)])
                    if (measurement := total(given, meter))
                },
                "measuring": [
                    {"usage": each.usage.model_dump(), "seconds": each.seconds} for each in measured
                ],
            }
        rows.append(row)
    whole = found.model_dump(mode="json")
    render.print_json(
        {
            "experiment": whole,
            "questions_per_worker": at_once(store, found.name),
            "progress": store.experiments.progress(found.name).model_dump(),
            "items": rows,
        }
    )


def say_why(failed: "Sequence[Item]") -> None:
    """Print the number of failures and one message of each kind."""
    told: dict[str, str] = {}
    kinds: Counter[str] = Counter()
    for item in failed:
        if item.error is not None:
            kinds[item.error.type] += 1
            told.setdefault(item.error.type, item.error.message)
    render.note(f"{len(failed)} failed; run them again with `--retry-failed`")
    for kind, count in kinds.most_common(REASONS):
        render.note(f"{count} x {kind}: {render.plain(told[kind])}")


def show_estimates(found: "Sequence[CostEstimate]", name: str, *, json: bool) -> None:
    if json:
        estimates = [each.model_dump(mode="json") for each in found]
        render.print_json({"experiment": name, "estimates": estimates})
        return
    figures = {"left": 1, "calls": 4, "tokens in": 5, "tokens out": 6, "time": 2, "cost": 3}
    columns = [Column("workflow", wraps=14), *numbers(figures), Column("based on", 7, wraps=12)]
    rows = [
        (
            Text(render.plain(each.arm)),
            f"{each.items:,}",
            _about(each.calls),
            _about(each.input_tokens),
            _about(each.output_tokens) + _thought(each),
            "-" if each.seconds is None else progress.duration(each.seconds),
            "-" if each.cost is None else f"{each.cost:,.4f}",
            f"{each.n} ({each.basis})",
        )
        for each in found
    ]
    render.out().print(Grid(columns, rows))
    render.note("a dry run: nothing is stored; the cost is - if the price is unknown")


def tell_concurrency(at_once: "Concurrency", workers: int) -> None:
    """Print how many questions are processed at the same time, and why."""
    of_each = f" for each of {workers} workers" if workers > 1 else ""
    questions = counted(at_once.threads, "question")
    render.note(f"{questions} at a time{of_each} ({at_once.reason}); --threads sets another number")


def tell_memory(hardware: "Mapping[str, JsonValue]", workers: int) -> None:
    """Print the memory of the workers, if the system reports it."""
    taken = hardware.get("worker_bytes")
    if not isinstance(taken, int):
        return
    each = f"memory: {taken / 1e9:.1f} GB per worker with its models loaded"
    all_of_them = f", {workers * taken / 1e9:.1f} GB for {workers}" if workers > 1 else ""
    render.note(
        f"{each}{all_of_them}; the prefix caches of tiny and hf readers add up to twice their "
        "prefix_cache, by default 256MB (tiny) and 512MB (hf)"
    )


def _thought(each: "CostEstimate") -> str:
    return f" ({_about(each.thinking_tokens)} thought)" if each.thinking_tokens else ""


def _about(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
