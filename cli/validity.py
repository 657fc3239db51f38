"""Runs the validity suites; what one suite found is shown before the next begins."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import typer

from hopscope.cli import render, tables, wiring

SECONDS = {
    "eor": (0.4, 0.5),
    "erag": (0.0, 3.0),
    "grogu": (0.3, 0.6),
    "item": (0.0, 1.5),
    "seper": (0.3, 0.6),
    "step_credit": (0.5, 0.6),
    "workflows_by_k": (0.0, 2.1),
}
"""Of a suite by the embedded reader on one core: before the first question, and for each of
`--limit`."""
UNKNOWN = (1.0, 1.0)
"""Of a suite that is not in there."""


class Clock:
    """How long suites take: guessed before, then by those that are done."""

    def __init__(self, names: Sequence[str], limit: int) -> None:
        self._names = names
        self._left = {name: _seconds(name, limit) for name in names}
        self._guessed = self._taken = 0.0

    def before(self, *, embedded: bool) -> str:
        several = f"{len(self._names)} suites: " if len(self._names) > 1 else "suite "
        long = f"about {_long(sum(self._left.values()))} on an idle core"
        if not embedded:
            long = "how long that takes with this reader shows when the first is done"
        return f"{several}{', '.join(self._names)}; {long}"

    def after(self, name: str, seconds: float) -> str:
        """Count a suite that is done."""
        self._guessed += self._left.pop(name)
        self._taken += seconds
        told = f"suite {name}: {seconds:.0f} s"
        if not self._left:
            return told
        left = sum(self._left.values()) * self._taken / self._guessed
        return f"{told}; {len(self._left)} left, about {_long(left)}"


def _seconds(name: str, limit: int) -> float:
    once, each = SECONDS.get(name, UNKNOWN)
    return once + each * limit


def _long(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def run(
    names: Sequence[str],
    reader: str,
    other: str | None,
    *,
    seed: int,
    limit: int,
    form: str | None,
) -> None:
    """Run the suites of these names, or all, and print what they find; readers are named as by
    `wiring.reader`, the form is json, markdown or, for a person, None.

    A suite that fails is reported, and the others go on.

    Raises:
        UsageError: there is no such suite or reader; found out before anything is measured.
        typer.Exit: a suite failed.
    """
    from hopscope.lab import validity
    from hopscope.lab.validity import _bench
    from hopscope.lab.validity._figures import figures
    from hopscope.runtime import components

    asked = list(dict.fromkeys(names)) or components.names(validity)
    suites = {name: components.load(validity, name).build for name in asked}
    other = other or _small()
    bench = _bench.make(
        wiring.reader(reader),
        other=None if other is None else wiring.reader(other),
        seed=seed,
        limit=limit,
    )
    found: dict[str, dict[str, Any]] = {}
    failed = False
    clock = Clock(list(suites), limit)
    render.note(clock.before(embedded=reader == wiring.TINY))
    try:
        for name, build in suites.items():
            render.progress(f"{name} ({len(found) + 1} of {len(suites)})")
            begun = perf_counter()
            try:
                made = build(bench)
                found[name] = {key: f.model_dump(mode="json") for key, f in figures(made).items()}
            except Exception as error:  # whatever it is, the other suites do not depend on it
                render.progress("")
                reason = f"{type(error).__name__}: {error}"
                render.note(f"suite {name} failed: {reason}")
                clock.after(name, perf_counter() - begun)
                found[name], failed = {"error": _missing(reason)}, True
                continue
            render.progress("")
            render.note(clock.after(name, perf_counter() - begun))
            if form != "json":
                tables.show(made, form)
                render.say("")
    finally:
        # Ctrl-C in the last suite must not lose the others' figures.
        if form == "json":
            render.print_json(found)
    if failed:
        raise typer.Exit(1)


def _missing(reason: str) -> dict[str, Any]:
    """In the place of figures."""
    from hopscope.lab.validity._figures import Figure

    return Figure(value=None, n=0, reason=reason).model_dump(mode="json")


def _small() -> str | None:
    """The second reader that comes with the package, where it does."""
    from importlib.resources import files

    folder = files("hopscope.lab.hopland").joinpath("small")
    return f"hf:{folder}" if folder.joinpath("config.json").is_file() else None
