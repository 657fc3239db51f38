"""`hopscope list`: the components there are, and the options each takes."""

from enum import StrEnum
from typing import Annotated

import typer

from hopscope.cli import render
from hopscope.cli.run import Json


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


OF_THE_RUN = {
    Kind.rerankers: {"meter", "seed"},
    Kind.compressors: {"seed"},
    Kind.policies: {"workflow", "reader_name"},
}
"""Options that a run gives itself, so that users cannot."""


def list_components(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=f"What to list: {', '.join(Kind)}.")],
    json: Json = False,
) -> None:
    """List workflows, what finds, fuses, reranks or compresses passages, readers, meters, answer
    metrics, credit rules, entailments, policies, tables or validity suites."""
    from importlib import import_module

    from hopscope.runtime import components
    from hopscope.runtime.errors import UsageError

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
    }
    package = import_module(home[kind])
    rows: list[dict[str, object]] = []
    for name in components.names(package):
        try:
            module = components.load(package, name)
        except UsageError as error:
            rows.append({"name": name, "summary": str(error), "paper": None, "options": {}})
            continue
        options = components.options(module.build)
        paragraphs = [" ".join(p.split()) for p in (module.__doc__ or "").split("\n\n")]
        rows.append(
            {
                "name": name,
                "summary": paragraphs[0],
                "paper": next((p for p in paragraphs[1:] if "arXiv" in p), None),
                "options": {
                    key: None if p.default is p.empty else p.default
                    for key, p in options.items()
                    if key not in OF_THE_RUN.get(kind, ())
                },
            }
        )
    render.show_components(rows, json=json)
