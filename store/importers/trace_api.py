"""The HTTP API of a server with traces."""

import os
from collections.abc import Mapping
from typing import Any

import httpx

from hopscope.runtime.errors import TraceServerError, UsageError, first_line

TIMEOUT = 60.0
"""Seconds for a page."""


class TraceApi:
    """Asks a server, with a key from the environment."""

    def __init__(self, client: httpx.Client, url: str, key: str) -> None:
        """
        Args:
            url: what all paths begin with, without a password.
            key: the environment variables that hold the key, for messages.
        """
        self._client = client
        self._url = url
        self._key = key

    def page(
        self,
        path: str,
        listed: str,
        *,
        absent: str,
        params: Any = None,
        json: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """A JSON object with a list or an object in it.

        Args:
            listed: the name of the list, or of an object; it may be absent if empty.
            absent: what there is none of, if the server answers 404.
            json: is posted; without it the page is only asked for.

        Raises:
            UsageError: the server has no such page, or asks for another key.
            TraceServerError: the server failed.
        """
        url = self._url + path
        method = "GET" if json is None else "POST"
        try:
            reply = self._client.request(method, url, params=params, json=json)
        except httpx.HTTPError as error:
            raise TraceServerError(f"{url} cannot be reached: {first_line(error)}") from None
        if reply.status_code == 404:
            raise UsageError(f"{url}: there is no such {absent}")
        if reply.status_code in (401, 403):
            raise UsageError(f"{url} refuses access: set {self._key} to a key of the server")
        if reply.status_code != 200:
            raise TraceServerError(f"{url} answers {reply.status_code}: try again later")
        try:
            page = reply.json()
        except (ValueError, RecursionError):
            page = None
        if not isinstance(page, dict) or not isinstance(page.get(listed, []), list | dict):
            raise TraceServerError(f"{url} answers with something else than a page of {listed}")
        return page


def client(token: str, user: str = "", password: str = "") -> httpx.Client:
    """A client with the key that these environment variables hold, if any: a token, else a name
    with its password."""
    key, name = os.environ.get(token), os.environ.get(user)
    if key:
        return httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=TIMEOUT)
    return httpx.Client(
        auth=(name, os.environ.get(password, "")) if name else None, timeout=TIMEOUT
    )
