"""Traces from a server: the spans of a Phoenix project.

    http://127.0.0.1:6006/projects/PROJECT       as its page is called, or
    http://127.0.0.1:6006/v1/projects/PROJECT/spans/otlpv1

The spans are fetched page by page into a temporary file, whose format is `otlp`.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx

from hopscope.runtime.errors import TraceServerError, UsageError, first_line
from hopscope.store.trajectories.sources import Source

KEY = "PHOENIX_API_KEY"
"""Names the key of a server that asks for one."""
PAGE = 500
"""Spans in a page; Phoenix gives at most 1,000."""
TIMEOUT = 60.0
"""Seconds for a page."""
_PROJECT = re.compile(r"(.*?)/(?:v1/)?projects/([^/]+)(?:/.*)?\Z")


def is_url(location: str) -> bool:
    """Whether a location is that of a server."""
    return location.startswith(("http://", "https://"))


@contextmanager
def fetched(url: str) -> Iterator[Source]:
    """A file with the spans of a project, for as long as the block lasts.

    Raises:
        UsageError: the URL names no project.
        TraceServerError: the server failed; nothing is read.
    """
    parts = urlsplit(url)
    match = _PROJECT.match(parts.path)
    if match is None or not parts.hostname:
        raise UsageError(
            f"{shown(url)} names no project: give http://HOST:PORT/projects/NAME of Phoenix"
        )
    project = unquote(match[2])
    netloc = parts.netloc.rpartition("@")[2]
    api = f"{parts.scheme}://{netloc}{match[1]}/v1/projects/{quote(project, safe='')}/spans/otlpv1"
    key = os.environ.get(KEY)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with TemporaryDirectory(prefix="hopscope-import-") as folder:
        path = Path(folder) / "spans.jsonl"
        with (
            path.open("w", encoding="utf-8") as file,
            httpx.Client(headers=headers, timeout=TIMEOUT) as client,
        ):
            for page in _pages(client, api):
                file.write(json.dumps(page) + "\n")
        yield Source(path, f"phoenix:{project}")


def shown(url: str) -> str:
    """The URL without a password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _pages(client: httpx.Client, api: str) -> Iterator[dict[str, Any]]:
    cursor: str | None = None
    seen: set[str] = set()
    while True:
        asked = {"limit": str(PAGE)} | ({"cursor": cursor} if cursor else {})
        page = _page(client, api, asked)
        if page["data"]:
            yield page
        cursor = page.get("next_cursor")
        if not isinstance(cursor, str) or cursor in seen:
            return
        seen.add(cursor)


def _page(client: httpx.Client, api: str, asked: dict[str, str]) -> dict[str, Any]:
    try:
        reply = client.get(api, params=asked)
    except httpx.HTTPError as error:
        raise TraceServerError(f"{api} cannot be reached: {first_line(error)}") from None
    if reply.status_code == 404:
        raise UsageError(f"{api}: there is no such project")
    if reply.status_code in (401, 403):
        raise UsageError(f"{api} refuses access: set {KEY} to a key of the server")
    if reply.status_code != 200:
        raise TraceServerError(f"{api} answers {reply.status_code}: try again later")
    try:
        page = reply.json()
    except (ValueError, RecursionError):
        page = None
    if not isinstance(page, dict) or not isinstance(page.get("data"), list):
        raise TraceServerError(f"{api} answers with something else than a page of spans")
    return page
