"""`hopscope list`: the components of a kind, with their options."""

from enum import StrEnum
from typing import Annotated

import typer

from hopscope.api.views import render
from hopscope.cli.options.places import Json


class ComponentKind(StrEnum):
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
    services = "services"


OF_THE_RUN = {
    ComponentKind.rerankers: {"meter", "prompts", "seed"},
    ComponentKind.compressors: {"prompts", "seed"},
    ComponentKind.policies: {"workflow", "reader_name", "prompts"},
}
"""Options that the run sets, so that users cannot."""


def list_components(
    kind: Annotated[
        ComponentKind, typer.Argument(metavar="KIND", help=f"The kind: {', '.join(ComponentKind)}.")
    ],
    json: Json = False,
) -> None:
    """List the components of a kind, with their options.

    Includes components of other installed packages.
    """
    from importlib import import_module

    from pydantic_core import to_jsonable_python

    from hopscope.runtime import components
    from hopscope.runtime.errors import UsageError

    if kind is ComponentKind.presets:
        from hopscope.api import presets

        render.show_components(presets.rows(), json=json)
        return
    home = {
        ComponentKind.workflows: "hopscope.workflows",
        ComponentKind.retrievers: "hopscope.runtime.retrievers",
        ComponentKind.fusions: "hopscope.runtime.fusions",
        ComponentKind.rerankers: "hopscope.runtime.rerankers",
        ComponentKind.compressors: "hopscope.runtime.compressors",
        ComponentKind.readers: "hopscope.runtime.readers",
        ComponentKind.meters: "hopscope.tracing.meters",
        ComponentKind.metrics: "hopscope.tracing.answer_metrics",
        ComponentKind.credit: "hopscope.tracing.credit",
        ComponentKind.rules: "hopscope.tracing.credit",  # as `--rule` calls them
        ComponentKind.entailments: "hopscope.tracing.entailments",
        ComponentKind.policies: "hopscope.tracing.policies",
        ComponentKind.tables: "hopscope.lab.tables",
        ComponentKind.suites: "hopscope.lab.validity",
        ComponentKind.formats: "hopscope.store.formats",
        ComponentKind.services: "hopscope.api.services",
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
        if kind is ComponentKind.meters:
            row |= _told(found.name)
    render.show_components(rows, json=json)


def _told(meter: str) -> dict[str, object]:
    """The display that a meter declares."""
    from hopscope.tracing.reports.displays import display

    declared = display(meter)
    return {"heading": declared.heading, "unit": declared.unit, "gold": declared.gold}
