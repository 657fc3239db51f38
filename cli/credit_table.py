"""How `hopscope credit` prints what it found: a table for each meter, a column for each rule."""

import json as jsonlib
from typing import TYPE_CHECKING, Any

from rich.text import Text

from hopscope.cli.appraise import Appraised
from hopscope.cli.grid import Column, Grid
from hopscope.cli.render import out, plain
from hopscope.cli.run_table import context_cut, interval, spent

if TYPE_CHECKING:
    from hopscope.runtime.types import Credit, Run

Who = tuple[int | None, str | None]


def show(run: "Run", measured: Appraised, *, json: bool) -> None:
    """Print credits and what measuring them cost; as JSON on one line."""
    if json:
        print(
            jsonlib.dumps(_record(run, measured), ensure_ascii=False, allow_nan=False), flush=True
        )
        return
    console = out()
    console.print(Text(plain(run.question.text), style="bold"))
    titles = _titles(run)
    for meter in dict.fromkeys(credit.meter for credit in measured.credits):
        found = [credit for credit in measured.credits if credit.meter == meter]
        console.print(Text(meter, style="bold"))
        console.print(_table(run, titles, found))
    reasons = dict.fromkeys(c.measurement.reason for c in measured.credits if c.measurement.reason)
    for reason in reasons:
        console.print(Text(f"- not measured: {plain(reason)}", style="dim"))
    for meter, dropped in _dropped(measured).items():
        console.print(Text(f"- {context_cut(meter, dropped)}", style="dim"))
    appraisal = measured.appraisal
    cost = spent(appraisal.usage, appraisal.seconds, appraisal.pairs)
    settings = ", ".join(f"{k}={plain(str(v))}" for k, v in appraisal.provenance.settings.items())
    console.print(
        Text(
            f"run {run.id[:12]}  measured with {cost}  "
            f"{appraisal.provenance.settings_hash[:8]} ({settings}, "
            f"seed={appraisal.provenance.seed})",
            style="dim",
        )
    )


def _dropped(measured: Appraised) -> dict[str, tuple[str, ...]]:
    """By meter the passages that were not shown, where there are such."""
    found: dict[str, dict[str, None]] = {}
    for credit in measured.credits:
        if credit.measurement.dropped:
            found.setdefault(credit.meter, {}).update(dict.fromkeys(credit.measurement.dropped))
    return {meter: tuple(keys) for meter, keys in found.items()}


def _table(run: "Run", titles: dict[str, str], credits: "list[Credit]") -> Grid:
    rules = list(dict.fromkeys(credit.rule for credit in credits))
    cells: dict[Who, dict[str, str]] = {}
    for credit in credits:
        measured = credit.measurement
        text = (
            "-" if measured.value is None else interval(measured.value, measured.low, measured.high)
        )
        cells.setdefault((credit.step, credit.passage), {})[credit.rule] = text
    names = {step.index: step.name for step in run.steps}
    rows: list[tuple[str | Text, ...]] = []
    for step, passage in sorted(cells, key=_place):
        who = "run" if step is None else names.get(step, "")
        if passage is not None:
            who = f"  {plain(titles.get(passage))}  {plain(passage)}"
        number = "" if step is None else str(step)
        shares = (cells[step, passage].get(rule, "") for rule in rules)
        rows.append((number, Text(who), *shares))
    columns = [
        Column("#", right=True),
        Column("step, passage", wraps=16),
        *(Column(rule.replace("_", "-"), 1, right=True) for rule in rules),
    ]
    return Grid(columns, rows, stacked=True)


def _place(who: Who) -> tuple[bool, int, bool]:
    """Steps in order with their passages, whose order is kept, below; the run as a whole last."""
    step, passage = who
    return step is None, step or 0, passage is not None


def _titles(run: "Run") -> dict[str, str]:
    return {passage.key: passage.title for step in run.steps for passage in step.evidence}


def _record(run: "Run", measured: Appraised) -> dict[str, Any]:
    """The shape is a public contract: scripts read it."""
    appraisal, titles = measured.appraisal, _titles(run)
    return {
        "run": run.id,
        "question": run.question.text,
        "appraisal": {
            "id": appraisal.provenance.settings_hash,
            **appraisal.model_dump(mode="json", include={"measured", "usage", "seconds"}),
            **appraisal.provenance.model_dump(mode="json"),
        },
        "credits": [
            {
                "step": credit.step,
                "passage": credit.passage,
                "title": titles.get(credit.passage) if credit.passage else None,
                "rule": credit.rule,
                "meter": credit.meter,
                **credit.measurement.model_dump(mode="json"),
            }
            for credit in measured.credits
        ],
    }
