"""A meter in a run's table: the values before and after each step, and its shares."""

from collections.abc import Iterator
from typing import NamedTuple

from rich.text import Text

from hopscope.api.views.render import interval, number, plain
from hopscope.runtime.ports import Display
from hopscope.tracing.reports.displays import display, rule_heading
from hopscope.tracing.reports.records import (
    Gain,
    RunReport,
    StepReport,
    StepUtility,
    Total,
    TotalUtility,
)

BAR_CELLS = 8


class Shown(NamedTuple):
    """A meter in the table of a run."""

    meter: str
    display: Display
    rules: tuple[str, ...]
    """Measured rules without a field of their own in records."""

    @property
    def bar_cells(self) -> int:
        """The width of its bar; 0 without one."""
        return BAR_CELLS if self.display.full_bar else 0

    @property
    def headings(self) -> list[str]:
        if not self.display.baseline:
            return [self.display.heading, self.display.delta]
        changes = f"{self.display.delta} [95 %]"
        return [
            self.display.heading,
            changes,
            rule_heading("shapley"),
            *map(rule_heading, self.rules),
        ]

    def of(self, step: StepReport) -> StepUtility | Gain | None:
        return step.credit.get(self.meter) if step.retrieved else None

    def befores(self, found: RunReport) -> list[float | None]:
        """The value before each step."""
        total = found.total.meters.get(self.meter)
        before = total.before if isinstance(total, TotalUtility) else None
        befores = []
        for step in found.steps:
            befores.append(before)
            if utility := step.credit.get(self.meter):
                before = utility.value
        return befores

    def cells(self, step: StepReport, before: float | None) -> list[str | Text]:
        """As many cells as headings, and a bar if the meter has one."""
        bars = [Text("")] if self.display.full_bar else []
        match self.of(step):
            case Gain(value=value, delta=delta):
                return [self.number(value), self.change(delta)]
            case StepUtility() as utility if _measured(utility):
                bars = [self.bar(utility)] if bars else []
                return [
                    f"{self.number(before)} → {self.number(utility.value)}",
                    self.interval(utility),
                    self.change(utility.shapley),
                    *(self.change(utility.shares.get(rule)) for rule in self.rules),
                    *bars,
                ]
            case _:
                return ["" for _ in self.headings] + bars

    def lines(self, step: StepReport, before: float | None) -> Iterator[Text]:
        """The same for a narrow terminal."""
        heading, delta = self.display.heading, self.display.delta
        match self.of(step):
            case Gain() as gain:
                yield Text(
                    f"{heading} {self.number(gain.value)}   {delta} {self.change(gain.delta)}"
                )
            case StepUtility() as utility if _measured(utility):
                yield Text(
                    f"{heading} {self.number(before)} → {self.number(utility.value)}   "
                    f"{delta} {self.interval(utility)}"
                )
                shares = {"shapley": utility.shapley} | {
                    rule: utility.shares.get(rule) for rule in self.rules
                }
                line = Text(
                    "   ".join(f"{rule_heading(r)} {self.change(v)}" for r, v in shares.items())
                )
                if self.display.full_bar:
                    line.append(" ")
                    line.append_text(self.bar(utility))
                yield line

    def total(self, total: Total) -> Iterator[str]:
        """The run's totals in words."""
        match total.meters.get(self.meter):
            case Gain(value=value) if value is not None:
                yield f"{self.display.heading} {self.number(value)}"
            case TotalUtility() as whole if whole.delta is not None:
                before, after = self.number(whole.before), self.number(whole.after)
                yield f"{self.display.heading} {before} → {after}"
                yield f"{self.display.delta} {self.interval(whole)} (n {whole.n})"

    def number(self, value: float | None) -> str:
        """A value of the meter; a gain has its sign."""
        signed = not self.display.baseline
        return number(value, signed=signed, digits=self.display.digits)

    def change(self, value: float | None) -> str:
        return number(value, signed=True, digits=self.display.digits)

    def interval(self, of: StepUtility | TotalUtility) -> str:
        return interval(of.delta, of.low, of.high, digits=self.display.digits)

    def bar(self, utility: StepUtility) -> Text:
        """A bar of up to eight cells: green for gain, red for loss, empty for nothing."""
        value = utility.delta if utility.shapley is None else utility.shapley
        if value is None or not self.display.full_bar:
            return Text("")
        cells = min(BAR_CELLS, round(abs(value) / self.display.full_bar * BAR_CELLS))
        return Text("█" * cells, style="green" if value > 0 else "red")

    def parts(self, found: RunReport) -> list[StepUtility | TotalUtility]:
        """The utilities of the run and of its steps; none for a meter whose values are gains."""
        return [p for p in _parts(found, self.meter) if p is not None and not isinstance(p, Gain)]


def shown(found: RunReport) -> list[Shown]:
    """The measured meters of a run, else the default ones."""
    meters = list(found.total.meters)
    measured = [m for m in meters if any(_parts(found, m))]
    return [_shown(found, meter) for meter in measured or meters]


def _measured(utility: StepUtility) -> bool:
    values = [utility.delta, utility.shapley, *utility.shares.values()]
    return any(value is not None for value in values)


def _shown(found: RunReport, meter: str) -> Shown:
    steps = (part for part in _parts(found, meter) if isinstance(part, StepUtility))
    rules = dict.fromkeys(rule for part in steps for rule in part.shares)
    told = display(meter)
    return Shown(meter, told._replace(heading=plain(told.heading)), tuple(rules))


def reasons(found: RunReport) -> list[str]:
    """The reasons of missing numbers, each once."""
    totals = found.total.meters.values()
    parts = [*totals, *(part for step in found.steps for part in step.credit.values())]
    return list(dict.fromkeys(part.reason for part in parts if part and part.reason))


def _parts(found: RunReport, meter: str) -> list[StepUtility | TotalUtility | Gain | None]:
    return [found.total.meters.get(meter), *(step.credit.get(meter) for step in found.steps)]
