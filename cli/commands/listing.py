"""`hopscope list`: the components of a kind, with their options."""

from enum import StrEnum
from typing import Annotated

import typer

from hopscope.api.views import render
from hopscope.cli.options.places import Json


class Kind(StrEnum):
    workflows = "workflows"
    retrievers = "retrievers"
    fusions = "fusions"
    rerankers = "rerankers"
    compressors = "compressors"
    readers = "readers"
    meters = "meters"
    metrics = "metrics"
    credit = "credit"
    rules = "rules"
    entailments = "entailments"
    policies = "policies"
    tables = "tables"
    suites = "suites"
    presets = "presets"
    formats = "formats"


OF_THE_RUN = {
    Kind.rerankers: {"meter", "seed"},
    Kind.compressors: {"seed"},
    Kind.policies: {"workflow", "reader_name"},
}
"""Options that the run sets, so that users cannot."""


def list_components(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=f"The kind: {', '.join(Kind)}.")],
    json: Json = False,
) -> None:
    """List the components of a kind, with their options.

    Includes components of other installed packages.
    """
    from importlib import import_module

    from pydantic_core import to_jsonable_python

    from hopscope.runtime import components
    from hopscope.runtime.errors import UsageError

    if kind is Kind.presets:
        from hopscope.api import presets

        render.show_components(presets.rows(), json=json)
        return
    home = {
        Kind.workflows: "hopscope.workflows",
        Kind.retrievers: "hopscope.runtime.retrievers",
        Kind.fusions: "hopscope.runtime.fusions",
        Kind.rerankers: "hopscope.runtime.rerankers",
        Kind.compressors: "hopscope.runtime.compressors",
        Kind.readers: "hopscope.runtime.readers",
        Kind.meters: "hopscope.tracing.meters",
        Kind.metrics: "hopscope.tracing.answer_metrics",
        Kind.credit: "hopscope.tracing.credit",
        Kind.rules: "hopscope.tracing.credit",  # as `--rule` calls them
        Kind.entailments: "hopscope.tracing.entailments",
        Kind.policies: "hopscope.tracing.policies",
        Kind.tables: "hopscope.lab.tables",
        Kind.suites: "hopscope.lab.validity",
        Kind.formats: "hopscope.store.formats",
    }
    package = import_module(home[kind])
    rows: list[dict[str, object]] = []
    for found in components.found(package):
        row: dict[str, object] = {"name": found.name, "from": found.origin}
        rows.append(row)
        try:
            if found.problem:
                raise UsageError(found.problem)
            module = components.load(package, found.name)
        except UsageError as error:
            row |= {"summary": f"cannot be used: {error}", "paper": None, "options": {}}
            continue
        paragraphs = [" ".join(p.split()) for p in (module.__doc__ or "").split("\n\n")]
        options = {
            key: None if p.default is p.empty else to_jsonable_python(p.default, fallback=str)
            for key, p in components.options(module.build).items()
            if key not in OF_THE_RUN.get(kind, ())
        }
        row |= {
            "summary": paragraphs[0],
            "paper": next((p for p in paragraphs[1:] if "arXiv" in p), None),
            "options": options,
        }
        if kind is Kind.meters:
            row |= _told(found.name)
    render.show_components(rows, json=json)


def _told(meter: str) -> dict[str, object]:
    """The display that a meter declares."""
    from hopscope.tracing.reports.displays import display

    declared = display(meter)
    return {"heading": declared.heading, "unit": declared.unit, "gold": declared.gold}
