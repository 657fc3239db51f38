"""Runs the validity suites; what one suite found is shown before the next begins."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import typer

from hopscope.cli import render, tables, wiring


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
                found[name], failed = {"error": _missing(reason)}, True
                continue
            render.progress("")
            render.note(f"suite {name}: {perf_counter() - begun:.0f} s")
            if form != "json":
                tables.show(made, form)
                print()
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
