"""The tables of `hopscope credit`: one for each meter, with a column for each rule."""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rich.text import Text

from hopscope.api.views.grid import Column, Grid
from hopscope.api.views.render import interval, note, out, plain, print_json
from hopscope.api.views.run_table import context_cut, replies_cut, spent
from hopscope.runtime.texts.counting import counted
from hopscope.tracing import proxies
from hopscope.tracing.asking import cut_off
from hopscope.tracing.meters import DEFAULT_METERS
from hopscope.tracing.reports.appraised import Appraised
from hopscope.tracing.reports.displays import display

if TYPE_CHECKING:
    from rich.console import Console

    from hopscope.runtime.types import Credit, Measurement, Run
    from hopscope.tracing.statistics.over_questions import Statistic

COLUMNS = ("level", "trajectory", "leave_one_out", "shapley", "solo", "total")
"""The order of rules, whether they were just measured or come from the store."""
Who = tuple[int | None, str | None]


def show(run: "Run", measured: Appraised, *, json: bool, console: "Console | None" = None) -> None:
    """Print credits and the cost of measuring them; as JSON on one line. The default console is
    stdout."""
    if json:
        print_json(_record(run, measured), indent=None)
        return
    console = console or out()
    console.print(Text(plain(run.question.text), style="bold"))
    titles = _titles(run)
    for meter in _ordered((credit.meter for credit in measured.credits), DEFAULT_METERS):
        found = [credit for credit in measured.credits if credit.meter == meter]
        console.print(Text(meter, style="bold"))
        console.print(_table(run, titles, found, display(meter).digits))
    reasons = dict.fromkeys(c.measurement.reason for c in measured.credits if c.measurement.reason)
    for reason in reasons:
        console.print(Text(f"- not measured: {plain(reason)}", style="dim"))
    for meter, cut in _cut_off(measured).items():
        console.print(Text(f"- {replies_cut(meter, cut)}", style="dim"))
    for meter, dropped in _dropped(measured).items():
        console.print(Text(f"- {context_cut(meter, dropped)}", style="dim"))
    appraisal = measured.appraisal
    cost = spent(appraisal.usage, appraisal.seconds, appraisal.pairs)
    console.print(
        Text(
            f"run {run.id[:12]}  measured with {cost}  "
            f"{appraisal.provenance.settings_hash[:8]} ({_settings(measured)})",
            style="dim",
        )
    )
    budget = appraisal.provenance.settings.get("credit_budget")
    if budget is not None and measured.games:
        replies, requests = _replies(measured), appraisal.usage.calls
        told = f"{counted(replies, 'reply', 'replies')} of {counted(requests, 'request')} (calls)"
        console.print(Text(f"{told}; the budget of each meter is {budget}", style="dim"))
    if remark := proxies.told(run.reader, appraisal.provenance.reader):
        console.print(Text(plain(remark), style="dim"))


def _replies(measured: Appraised) -> int:
    """The replies behind the values of all meters, one for a value that needs no sample."""
    of = {
        (game.meter, value.evidence): value.measurement
        for game in measured.games
        for value in game.values
    }
    return sum(max(1, each.n) for each in of.values() if each.value is not None)


def show_means(measured: "Sequence[tuple[str, Run, Appraised]]") -> None:
    """Print the mean share of each retrieval by each meter and rule, over the runs of each arm."""
    from hopscope.tracing.statistics.averages import average

    shares: dict[tuple[str, str, str], dict[str, list[Measurement]]] = {}
    rules: dict[str, None] = {}
    for label, run, found in measured:
        places = _places(run)
        for credit in found.credits:
            if credit.rule == "level":
                continue
            place = places.get((credit.step, credit.passage))
            if place is not None:
                rules[credit.rule] = None
                row = shares.setdefault((label, credit.meter, place), {})
                row.setdefault(credit.rule, []).append(credit.measurement)
    columns = [
        Column("workflow", wraps=12),
        Column("meter"),
        Column("share of"),
        Column("runs", 1, right=True),
        *(Column(rule.replace("_", "-"), 1, right=True) for rule in _ordered(rules, COLUMNS)),
    ]
    rows: list[tuple[str | Text, ...]] = []
    reasons: dict[str, None] = {}
    for (label, meter, place), by_rule in sorted(shares.items(), key=itemgetter(0)):
        cells = []
        for rule in _ordered(rules, COLUMNS):
            mean = average(by_rule.get(rule, []))
            cells.append("" if rule not in by_rule else _mean(mean, display(meter).digits))
            reasons |= dict.fromkeys(m.reason for m in by_rule.get(rule, []) if m.reason)
        runs = max(len(values) for values in by_rule.values())
        rows.append((Text(plain(label)), meter, place, str(runs), *cells))
    console = out()
    console.print(Text(f"Means over {counted(len(measured), 'run')}", style="bold"))
    console.print(Grid(columns, rows, stacked=True))
    for reason in reasons:
        console.print(Text(f"- not measured: {plain(reason)}", style="dim"))
    hashes = dict.fromkeys(
        (each.appraisal.provenance.settings_hash, _settings(each)) for _, _, each in measured
    )
    for hash, settings in hashes:
        console.print(Text(f"{hash[:8]} ({settings})", style="dim"))
    for remark in _proxies(measured):
        console.print(Text(plain(remark), style="dim"))
    note("intervals: bootstrap over runs (BCa); --each prints the tables of every run")


def _proxies(measured: "Sequence[tuple[str, Run, Appraised]]") -> list[str]:
    """A remark for each reader that measured runs of others."""
    ran: dict[str, Counter[str]] = {}
    for _, run, found in measured:
        ran.setdefault(found.appraisal.provenance.reader, Counter())[run.reader] += 1
    remarks = (proxies.told_of_runs(runs, reader) for reader, runs in ran.items())
    return [remark for remark in remarks if remark]


def _places(run: "Run") -> dict[Who, str]:
    """The receivers of credits by names that runs share: the first, second, … retrieval, a rank of
    its passages, the whole run."""
    found: dict[Who, str] = {(None, None): "run"}
    for number, step in enumerate(run.retrievals, start=1):
        found[step.index, None] = f"retrieval {number}"
        for rank, hit in enumerate(step.ranked, start=1):
            found[step.index, hit.passage.key] = f"retrieval {number}, rank {rank}"
    return found


def _mean(found: "Statistic", digits: int) -> str:
    if found.value is None:
        return f"- 0/{found.total}"
    text = interval(found.value, found.low, found.high, digits=digits)
    return text if found.measured == found.total else f"{text} ({found.measured})"


def _settings(measured: Appraised) -> str:
    provenance = measured.appraisal.provenance
    settings = {**provenance.settings, "seed": provenance.seed}
    return ", ".join(f"{key}={plain(str(value))}" for key, value in settings.items())


def _cut_off(measured: Appraised) -> dict[str, str]:
    """By meter, the first replies that were cut off."""
    found: dict[str, str] = {}
    for credit in measured.credits:
        if cut := cut_off.replies(credit.measurement.estimator):
            found.setdefault(credit.meter, cut)
    return found


def _dropped(measured: Appraised) -> dict[str, tuple[str, ...]]:
    """By meter, the passages that were not shown."""
    found: dict[str, dict[str, None]] = {}
    for credit in measured.credits:
        if credit.measurement.dropped:
            found.setdefault(credit.meter, {}).update(dict.fromkeys(credit.measurement.dropped))
    return {meter: tuple(keys) for meter, keys in found.items()}


def _table(run: "Run", titles: dict[str, str], credits: "list[Credit]", digits: int) -> Grid:
    rules = _ordered((credit.rule for credit in credits), COLUMNS)
    cells: dict[Who, dict[str, str]] = {}
    for credit in credits:
        measured = credit.measurement
        text = (
            "-"
            if measured.value is None
            else interval(measured.value, measured.low, measured.high, digits=digits)
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


def _ordered(names: Iterable[str], first: Sequence[str]) -> list[str]:
    """Each name once: the known ones in their order, then the others by name."""
    places = {name: place for place, name in enumerate(first)}
    return sorted(set(names), key=lambda name: (places.get(name, len(places)), name))


def _place(who: Who) -> tuple[bool, int, bool]:
    """Steps in order, each followed by its passages in order; the whole run last."""
    step, passage = who
    return step is None, step or 0, passage is not None


def _titles(run: "Run") -> dict[str, str]:
    return {passage.key: passage.title for step in run.steps for passage in step.evidence}


def _record(run: "Run", measured: Appraised) -> dict[str, Any]:
    """The JSON record; its shape is a public contract."""
    appraisal, titles = measured.appraisal, _titles(run)
    return {
        "run": run.id,
        "question": run.question.text,
        "appraisal": {
            "id": appraisal.provenance.settings_hash,
            **appraisal.model_dump(mode="json", include={"measured", "usage", "seconds"}),
            **appraisal.provenance.model_dump(mode="json"),
            "proxy": proxies.is_proxy(run.reader, appraisal.provenance.reader),
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
