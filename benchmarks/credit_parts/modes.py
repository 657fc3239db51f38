"""The product's ways to compare pairs of texts: exact, and approximations by their options.

How far an approximation's credit is from the exact one, and how often its interval holds it. Nine
tenths of each verdict are lexical and the same in all modes (`prompted.py`), so what another
precision changes is a tenth of what it changes for the entailment model alone;
benchmarks/reader/entailment.py measures that with a trained model.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from credit_parts.bench import Benchmark, Row
from credit_parts.product import Product
from credit_parts.runs import trajectories
from credit_parts.straightforward import Clock
from hopscope.runtime.models import linear
from hopscope.runtime.models.devices import Precision
from hopscope.runtime.types import Measurement, Run

Credits = Mapping[tuple[str, int], Measurement]
"""By meter and step."""
METERS = {"SePer-S": ("seper",), "SePer-S and -H": ("seper", "seper_hard")}


class Mode(NamedTuple):
    """Options of the entailment model and of SePer."""

    precision: Precision = "single"
    tolerance: float = 0.0


EXACT = "exact"
MODES = {
    EXACT: Mode(),
    "tolerance .01": Mode(tolerance=0.01),
    "tolerance .01, eight bits": Mode("eight-bits", 0.01),
    "tolerance .01, bfloat16": Mode("bfloat16", 0.01),
    "tolerance .1, eight bits": Mode("eight-bits", 0.1),
    "tolerance .1, bfloat16": Mode("bfloat16", 0.1),
}


def available() -> dict[str, Mode]:
    """The modes that this processor has."""
    return {name: mode for name, mode in MODES.items() if linear.multiplies(mode.precision)}


def product(bench: Benchmark, mode: Mode, meters: tuple[str, ...]) -> Product:
    """The product in a mode, warm."""
    found = Product(bench, "trajectory", meters, precision=mode.precision, tolerance=mode.tolerance)
    found.warm()
    return found


def measure(bench: Benchmark) -> Row:
    """Every mode over the runs, in turn; nothing of the authors'."""
    runs = trajectories(bench)
    return {name: compared(bench, runs, meters) for name, meters in METERS.items()}


def compared(bench: Benchmark, runs: Sequence[Run], meters: tuple[str, ...]) -> Row:
    """The modes against the exact one."""
    products = {name: product(bench, mode, meters) for name, mode in available().items()}
    clocks = {name: Clock() for name in products}
    credits: dict[str, list[Credits]] = {name: [] for name in products}
    for found in runs:
        for name, each in products.items():
            with clocks[name].running():
                credits[name].append(each.measured(found))
    return {
        name: {
            "seconds": bench.seconds(clocks[name]),
            "pairs": each.pairs,
            **beside(credits[EXACT], credits[name]),
        }
        for name, each in products.items()
    }


def beside(exact: Sequence[Credits], found: Sequence[Credits]) -> Row:
    """Differences of credit from the exact one, run by run, and the intervals that hold it."""
    both = [
        (wanted[key], given[key])
        for wanted, given in zip(exact, found, strict=True)
        for key in wanted
    ]
    apart = [abs(value(a) - value(b)) for a, b in both]
    held = [_holds(b, value(a)) for a, b in both]
    return {
        "credits": len(both),
        "mean difference": mean(apart),
        "greatest difference": max(apart),
        "intervals that hold the exact credit": sum(held),
    }


def value(measured: Measurement) -> float:
    """The value of a credit that was measured."""
    assert measured.value is not None
    return measured.value


def _holds(measured: Measurement, exact: float) -> bool:
    assert measured.low is not None
    assert measured.high is not None
    return measured.low <= exact <= measured.high
