"""HTTP with a server that speaks OpenAI's API; what failed for now is asked again.

Nothing but the server that the user named is contacted: redirects are not followed, and proxies of
the environment are used for https only. A key comes from an environment variable alone; it stands
in no address, record, log or message, and what a server says about a key is not repeated.
"""

import json
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

from hopscope.runtime.errors import ReaderError, UsageError
from hopscope.runtime.secrecy import Secret, shown

OPENAI = "api.openai.com"
OPENAI_KEY = "OPENAI_API_KEY"
KEY = "HOPSCOPE_API_KEY"
CONNECT = 10.0
"""Seconds to wait for a connection."""
LONGEST_WAIT = 60.0
"""Seconds between two tries; a server that wants more is not asked again."""
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses of what may go better the next time."""
SPENT = "insufficient_quota"
"""What OpenAI calls a 429 that no waiting helps against."""


class Address(NamedTuple):
    """A model on a server."""

    url: str
    """What all paths follow, often ending in /v1."""
    model: str

    @property
    def host(self) -> str:
        """Name and port."""
        return urlsplit(self.url).netloc

    @property
    def hostname(self) -> str:
        return urlsplit(self.url).hostname or ""


class Refused(ReaderError):
    """The server answered with an error that asking again does not change."""

    def __init__(self, message: str, *, status: int, told: "Told") -> None:
        super().__init__(message)
        self.status = status
        self.code = told.code
        self.param = told.param
        self.said = told.message


class Told(NamedTuple):
    """What a server says of an error."""

    message: str
    code: str = ""
    """Its own word for what is wrong, or empty."""
    param: str = ""
    """The field of the request that it is about, or empty."""


class Unavailable(ReaderError):
    """The server cannot be reached or is overloaded: it may go better the next time."""

    def __init__(self, message: str, *, after: float = 0.0) -> None:
        super().__init__(message)
        self.after = after
        """Seconds that the server wants to be left alone."""


def address(named: str) -> Address:
    """What `http://HOST:PORT/v1#MODEL` names.

    Raises:
        UsageError: it names no model, or holds credentials.
    """
    url, _, model = named.partition("#")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if usable and (parts.username or parts.password):
        raise UsageError(
            "an address is stored with each run, so it must hold no credentials: "
            f"give the key by the environment variable {KEY}"
        )
    if not usable or parts.query or not model:
        raise UsageError(
            f"{named!r} names no model on a server: give openai:URL#MODEL, as in "
            "openai:http://127.0.0.1:8000/v1#my-model"
        )
    return Address(url.rstrip("/"), model)


class Endpoint:
    """A server. Threads may share it."""

    def __init__(
        self,
        where: Address,
        *,
        key_from: str | None,
        timeout: float,
        retries: int,
        connections: int,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        """Nothing is contacted yet. Without `key_from`, the environment variable that holds the key
        depends on the server, so that a key for OpenAI goes nowhere else unasked.

        Raises:
            UsageError: the variable holds no key, or a number makes no sense.
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
        # The client's own complaint about a broken header would show it.
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise UsageError(
                f"what {self._key_from} holds is no key: it has spaces or odd characters"
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
            retry=tenacity.retry_if_exception_type(Unavailable),
            stop=tenacity.stop_after_attempt(retries + 1),
            wait=_pause,
            reraise=True,
        )

    def get(self, path: str) -> Any:
        """The JSON at a path, asked for once.

        Raises:
            ReaderError: the server cannot be reached, refuses, or failed.
        """
        return self._ask("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON that answers `body`, asked again where that may help.

        Raises:
            ReaderError: as `get`.
        """
        return self._retrying.copy()(self._ask, "POST", path, body)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        try:
            answer = self._client.request(method, f"{self._url}{path}", json=body)
        except httpx.ConnectTimeout:
            raise Unavailable(f"{self._url} cannot be reached: no connection in time") from None
        except httpx.TimeoutException:
            raise Unavailable(
                f"{self._url} gave no answer in time; a longer timeout may help (timeout=SECONDS)"
            ) from None
        except httpx.TransportError as error:
            raise Unavailable(
                f"{self._url} cannot be reached: {self.clean(error)}; start the server, or give "
                "the address that it has"
            ) from None
        except httpx.DecodingError as error:
            raise Unavailable(
                f"{self._url} answered with what cannot be decoded: {self.clean(error)}"
            ) from None
        if not answer.is_success:
            raise self._failure(answer, answer.status_code)
        told = _json(answer)
        if told is UNREADABLE:  # an answer that was cut off is whole the next time
            raise Unavailable(str(strange(self._url)))
        if isinstance(told, Mapping) and told.get("error") and "choices" not in told:
            # OpenRouter tells some errors so, with their status as the code.
            inner = told["error"].get("code") if isinstance(told["error"], Mapping) else None
            raise self._failure(answer, inner if isinstance(inner, int) else answer.status_code)
        return told

    def _failure(self, answer: httpx.Response, status: int) -> ReaderError:
        told = _told(answer)
        told = told._replace(message=self.clean(told.message))
        if status in (401, 403):
            # OpenAI repeats a part of the key here.
            held = "it holds one" if self._secret else "it is not set"
            return Refused(
                f"{self._url} does not take the key, or wants one (status {status}): give it by "
                f"the environment variable {self._key_from}; {held}",
                status=status,
                told=told,
            )
        message = f"{self._url} answered with status {status}: {told.message}"
        if status in PASSING and told.code != SPENT:
            after = _wanted_pause(answer)
            if after <= LONGEST_WAIT:
                return Unavailable(message, after=after)
            message += f"; it wants to be asked again in {after:.0f} seconds"
        elif status == 404:
            message += "; is the model there, and does the address end as it should, often in /v1?"
        return Refused(message, status=status, told=told)

    def clean(self, what: object) -> str:
        """What the server said as a message may repeat it."""
        return shown(str(what), self._secret) or type(what).__name__


def strange(url: str) -> ReaderError:
    """The error for an answer that is none of OpenAI's API."""
    return ReaderError(f"{url} does not answer as OpenAI's API does: is this its address?")


UNREADABLE = object()
"""Stands for an answer that is no JSON, which may itself be null."""


def _json(answer: httpx.Response) -> Any:
    """The answer as JSON, or `UNREADABLE`; also where it is nested deeper than Python reads."""
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        return UNREADABLE


def _told(answer: httpx.Response) -> Told:
    """What is said of an error, however the server words it."""
    body = _json(answer)
    if body is UNREADABLE:
        # A charset in the header is the server's word, and not all that Python knows are of text.
        return Told(answer.content.decode(errors="replace") or answer.reason_phrase)
    told: Any = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(told, Mapping):
        return Told(str(told))
    message = told.get("message") or told.get("detail") or told
    code, param = told.get("code") or told.get("type") or "", told.get("param")
    return Told(str(message), str(code), param if isinstance(param, str) else "")


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
"""A random time up to .5, 1, 2, … seconds, so that clients refused together come back apart."""


def _pause(state: tenacity.RetryCallState) -> float:
    failed = state.outcome.exception() if state.outcome else None
    wanted = failed.after if isinstance(failed, Unavailable) else 0.0
    return wanted + _random_pause(state)
