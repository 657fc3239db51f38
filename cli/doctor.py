"""`hopscope doctor`: what is installed, what is missing and how to get it."""

import os
import platform
import shutil
from importlib import metadata

from hopscope.cli import render
from hopscope.cli.run import Database, Json

CORE = (
    "torch",
    "transformers",
    "langgraph",
    "bm25s",
    "sqlalchemy",
    "opentelemetry-sdk",
)
EXTRAS = {
    "faiss-cpu": ("faiss-cpu",),
    "faiss-gpu": ("faiss-gpu-cu12", "faiss-gpu"),
    "lucene": ("pyserini",),
    "postgres": ("psycopg",),
    "vllm": ("vllm",),
}


def doctor(db: Database = None, json: Json = False) -> None:
    """Tell what is installed, what is missing and how to get it."""
    from hopscope import __version__
    from hopscope.store.location import display, resolve

    rows = [("hopscope", "ok", __version__), ("python", "ok", platform.python_version())]
    rows += [_distribution(name, (name,), f"pip install {name}") for name in CORE]
    rows += [
        _distribution(f"extra {extra}", names, f"pip install 'hopscope[{extra}]'")
        for extra, names in EXTRAS.items()
    ]
    java = shutil.which("java")
    rows.append(("java", "ok", java) if java else ("java", "missing", "only Lucene needs it"))
    rows.append(("database", "ok", display(resolve(db))))
    endpoint = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or os.environ.get(
        "OTEL_EXPORTER_OTLP_ENDPOINT"
    )
    rows.append(("spans sent to", "ok" if endpoint else "off", endpoint or "nowhere"))
    render.show_checks(rows, json=json)


def _distribution(label: str, names: tuple[str, ...], remedy: str) -> tuple[str, str, str]:
    for name in names:
        try:
            return label, "ok", metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return label, "missing", remedy
