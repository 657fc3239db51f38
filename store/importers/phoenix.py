"""The spans of a Phoenix project, page by page, in the form of OTLP."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from hopscope.runtime.errors import TraceServerError
from hopscope.store.importers.trace_api import TraceApi, client

KEY = "PHOENIX_API_KEY"
"""Names the key of a server that asks for one."""
PAGE = 500
"""Spans in a page; Phoenix gives at most 1,000."""


def pages(url: str, project: str) -> Iterator[dict[str, Any]]:
    """
    Args:
        url: of the server.

    Raises:
        UsageError, TraceServerError: as `TraceApi.page`.
    """
    path = f"/v1/projects/{quote(project, safe='')}/spans/otlpv1"
    with client(KEY) as http:
        api = TraceApi(http, url, KEY)
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            asked = {"limit": str(PAGE)} | ({"cursor": cursor} if cursor else {})
            page = api.page(path, "data", absent="project", params=asked)
            if not isinstance(page.get("data"), list):
                raise TraceServerError(f"{url}{path} answers with something else than a page")
            if page["data"]:
                yield page
            cursor = page.get("next_cursor")
            if not isinstance(cursor, str) or cursor in seen:
                return
            seen.add(cursor)
