"""Traces from a server, by the URL of its page.

    http://127.0.0.1:6006/projects/PROJECT       Phoenix; also .../v1/projects/PROJECT/spans/otlpv1
    http://127.0.0.1:5000/#/experiments/ID       MLflow; also .../experiments/NAME

They are fetched into a temporary file, of the format `otlp` or `mlflow`.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from hopscope.runtime.errors import UsageError
from hopscope.store.importers import mlflow, phoenix
from hopscope.store.trajectories.sources import Source

_PROJECT = re.compile(r"(.*?)/(?:v1/)?projects/([^/]+)(?:/.*)?\Z")
_EXPERIMENT = re.compile(r"(.*?)/(?:#/)?experiments/([^/?]+)(?:[/?].*)?\Z")


def is_url(location: str) -> bool:
    """Whether a location is that of a server."""
    return location.startswith(("http://", "https://"))


@contextmanager
def fetched(url: str) -> Iterator[Source]:
    """A file with the spans of a project or experiment, for as long as the block lasts.

    Raises:
        UsageError: the URL names none.
        TraceServerError: the server failed; nothing is read.
    """
    parts = urlsplit(url)
    server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    path = f"{parts.path}#{parts.fragment}" if parts.fragment else parts.path
    for maker, pattern, pages in (
        ("phoenix", _PROJECT, phoenix.pages),
        ("mlflow", _EXPERIMENT, mlflow.pages),
    ):
        if parts.hostname and (match := pattern.match(path)):
            name = unquote(match[2])
            with TemporaryDirectory(prefix="hopscope-import-") as folder:
                file = Path(folder) / "spans.jsonl"
                with file.open("w", encoding="utf-8") as opened:
                    for page in pages(server + match[1], name):
                        opened.write(json.dumps(page) + "\n")
                yield Source(file, f"{maker}:{name}")
            return
    raise UsageError(
        f"{shown(url)} names no project or experiment: give http://HOST:PORT/projects/NAME of "
        "Phoenix, or http://HOST:PORT/experiments/NAME of MLflow"
    )


def shown(url: str) -> str:
    """The URL without a password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
