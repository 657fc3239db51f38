"""HTTP to a server with OpenAI's API; requests that fail for a passing reason are repeated.

Only the server that the user named is contacted: redirects are not followed, and proxies of the
environment are used for https only. A key comes only from an environment variable; no address,
record, log or message contains it, and messages of a server about a key are not shown.
"""

import math
import os
import time
import weakref
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import tenacity

from hopscope.runtime.addresses import without_credentials
from hopscope.runtime.errors import ReaderError, UsageError
from hopscope.runtime.texts.literals import json_value
from hopscope.runtime.texts.secrecy import Secret, shown

OPENAI = "api.openai.com"
OPENAI_KEY = "OPENAI_API_KEY"
KEY = "HOPSCOPE_API_KEY"
CONNECT = 10.0
"""Seconds to wait for a connection."""
LONGEST_WAIT = 60.0
"""Most seconds between two tries; if a server demands more, the request fails."""
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses of passing failures."""
SPENT = "insufficient_quota"
"""OpenAI's code for a 429 that waiting does not end."""


class ModelAddress(NamedTuple):
    """A model on a server."""

    url: str
    """The base of all paths, often ending in /v1."""
    model: str

    @property
    def host(self) -> str:
        """Name and port."""
        return urlsplit(self.url).netloc

    @property
    def hostname(self) -> str:
        return urlsplit(self.url).hostname or ""


class RefusedRequestError(ReaderError):
    """The server refused the request; repeating it would not help."""

    def __init__(self, message: str, *, status: int, told: "ErrorDescription") -> None:
        super().__init__(message)
        self.status = status
        self.code = told.code
        self.param = told.param
        self.said = told.message


class ErrorDescription(NamedTuple):
    """A server's description of an error."""

    message: str
    code: str = ""
    """The server's code of the error, or empty."""
    param: str = ""
    """The field of the request that caused it, or empty."""


class ServerUnavailableError(ReaderError):
    """The server cannot be reached or is overloaded; a later request may succeed."""

    def __init__(self, message: str, *, after: float = 0.0) -> None:
        super().__init__(message)
        self.after = after
        """Seconds that the server wants clients to wait."""


def address(named: str) -> ModelAddress:
    """Parse `http://HOST:PORT/v1#MODEL`.

    Raises:
        UsageError: the address names no model, or holds credentials.
    """
    url, _, model = named.partition("#")
    parts = without_credentials(url, f"give the key by the environment variable {KEY}")
    if not parts or parts.query or not model:
        raise UsageError(
            f"{named!r} names no model on a server: give openai:URL#MODEL, as in "
            "openai:http://127.0.0.1:8000/v1#my-model"
        )
    return ModelAddress(url.rstrip("/"), model)


class Endpoint:
    """A server. Threads may share it."""

    def __init__(
        self,
        where: ModelAddress,
        *,
        key_from: str | None,
        timeout: float,
        retries: int,
        connections: int,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        """Nothing is sent yet. Without `key_from`, the environment variable of the key depends on
        the server, so that a key for OpenAI is never sent elsewhere by default.

        Raises:
            UsageError: the variable holds no key, or a number is out of range.
        """
        if not 0 < timeout < math.inf or retries < 0 or connections < 1:
            raise UsageError(
                f"{where.url}: timeout must be more than 0 seconds, retries 0 or more, "
                "concurrency 1 or more"
            )
        self._url = where.url
        self._key_from = key_from or (OPENAI_KEY if where.hostname == OPENAI else KEY)
        key = env.get(self._key_from, "").strip()
        if key_from and not key:
            raise UsageError(f"{where.url}: the environment variable {key_from} is not set")
        # The client's own error about a broken header would show the key.
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise UsageError(
                f"{self._key_from} holds no valid key: it has spaces or odd characters"
            )
        self._secret = Secret(key)
        self._client = httpx.Client(
            headers={"authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT)),
            limits=httpx.Limits(max_connections=connections),
            trust_env=where.url.startswith("https:"),
        )
        weakref.finalize(self, self._client.close)
        self._retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(ServerUnavailableError),
            stop=tenacity.stop_after_attempt(retries + 1),
            wait=_pause,
            reraise=True,
        )

    def get(self, path: str) -> Any:
        """The JSON at a path, from one request.

        Raises:
            ReaderError: the server cannot be reached, refuses, or failed.
        """
        return self._ask("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON reply to `body`; passing failures are retried.

        Raises:
            ReaderError: as `get`.
        """
        return self._retrying.copy()(self._ask, "POST", path, body)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        try:
            answer = self._client.request(method, f"{self._url}{path}", json=body)
        except httpx.ConnectTimeout:
            raise ServerUnavailableError(
                f"{self._url} cannot be reached: no connection in time"
            ) from None
        except httpx.TimeoutException:
            raise ServerUnavailableError(
                f"{self._url} gave no answer in time; a longer timeout may help (timeout=SECONDS)"
            ) from None
        except httpx.TransportError as error:
            raise ServerUnavailableError(
                f"{self._url} cannot be reached: {self.clean(error)}; start the server, or correct "
                "the address"
            ) from None
        except httpx.DecodingError as error:
            raise ServerUnavailableError(
                f"{self._url} sent an answer that cannot be decoded: {self.clean(error)}"
            ) from None
        if not answer.is_success:
            raise self._failure(answer, answer.status_code)
        reply = _json(answer)
        if reply is UNREADABLE:  # a truncated answer may be whole the next time
            raise ServerUnavailableError(str(strange(self._url)))
        if isinstance(reply, Mapping) and reply.get("error") and "choices" not in reply:
            # OpenRouter reports some errors like this, with their status as the code.
            inner = reply["error"].get("code") if isinstance(reply["error"], Mapping) else None
            raise self._failure(answer, inner if isinstance(inner, int) else answer.status_code)
        return reply

    def _failure(self, answer: httpx.Response, status: int) -> ReaderError:
        description = _told(answer)
        description = description._replace(message=self.clean(description.message))
        if status in (401, 403):
            # OpenAI repeats a part of the key here.
            state = "it holds one" if self._secret else "it is not set"
            return RefusedRequestError(
                f"{self._url} does not take the key, or wants one (status {status}): give it by "
                f"the environment variable {self._key_from}; {state}",
                status=status,
                told=description,
            )
        message = f"{self._url} answered with status {status}: {description.message}"
        if status in PASSING and description.code != SPENT:
            after = _wanted_pause(answer)
            if after <= LONGEST_WAIT:
                return ServerUnavailableError(message, after=after)
            message += f"; it wants to be asked again in {after:.0f} seconds"
        elif status == 404:
            message += "; is the model there, and does the address end as it should, often in /v1?"
        return RefusedRequestError(message, status=status, told=description)

    def clean(self, what: object) -> str:
        """Text of the server made safe for a message."""
        return shown(str(what), self._secret) or type(what).__name__


def strange(url: str) -> ReaderError:
    """The error for an answer that does not follow OpenAI's API."""
    return ReaderError(f"{url} does not answer as OpenAI's API does: is this its address?")


UNREADABLE = object()
"""Marks an answer that is no JSON; `None` is valid JSON (null)."""


def _json(answer: httpx.Response) -> Any:
    """The answer as JSON; `UNREADABLE` if it is none, or nested too deep for Python."""
    try:
        return json_value(answer.content)
    except ValueError:
        return UNREADABLE


def _told(answer: httpx.Response) -> ErrorDescription:
    """The description of an error in any of the servers' forms."""
    body = _json(answer)
    if body is UNREADABLE:
        # The header's charset is untrusted, and not every codec of Python decodes text.
        return ErrorDescription(answer.content.decode(errors="replace") or answer.reason_phrase)
    told: Any = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(told, Mapping):
        return ErrorDescription(str(told))
    message = told.get("message") or told.get("detail") or told
    code, param = told.get("code") or told.get("type") or "", told.get("param")
    return ErrorDescription(str(message), str(code), param if isinstance(param, str) else "")


def _wanted_pause(answer: httpx.Response) -> float:
    """Seconds from the header Retry-After, a number or a date."""
    stated = answer.headers.get("retry-after", "")
    try:
        seconds = float(stated)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(stated).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


_random_pause = tenacity.wait_random_exponential(multiplier=0.5, max=30)
"""A random time up to .5, 1, 2, … seconds, so that clients refused together return at different
times."""


def _pause(state: tenacity.RetryCallState) -> float:
    failed = state.outcome.exception() if state.outcome else None
    wanted = failed.after if isinstance(failed, ServerUnavailableError) else 0.0
    return wanted + _random_pause(state)
