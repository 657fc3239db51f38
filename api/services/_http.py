"""HTTP to a service; requests that fail for a passing reason are repeated.

Only the address that the user named is contacted: redirects are not followed. Keys come from
environment variables only; no message contains them.
"""

import json
import math
import os
import weakref
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import tenacity

from hopscope.api.sharing.service import ServiceError
from hopscope.runtime.addresses import without_credentials
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.literals import json_value
from hopscope.runtime.texts.secrecy import Secret, shown

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses of failures that may pass."""
TRIES = 4
TIMEOUT = 60.0
CONNECT = 10.0
LONGEST_WAIT = 30.0
"""Seconds that a service may make a client wait between two tries."""


def key(name: str) -> str:
    """A key from the environment; empty if there is none.

    Raises:
        UsageError: it cannot be one.
    """
    found = os.environ.get(name, "").strip()
    # The client's own error about a broken header would show the key.
    if not (found.isascii() and found.isprintable()) or " " in found:
        raise UsageError(f"{name} holds no valid key: it has spaces or odd characters")
    return found


def base(given: str | None, variables: tuple[str, ...], default: str, example: str) -> str:
    """The address of a service: given, of the environment, or the default; without its last /.

    Raises:
        UsageError: it is none, or holds a login.
    """
    named = next((os.environ[name] for name in variables if os.environ.get(name)), "")
    url = (given or named or default).rstrip("/")
    parts = without_credentials(url, "give the key by the service's environment variable")
    if not parts or parts.query or parts.fragment:
        raise UsageError(f"{url!r} is no address of a service: give one as {example}")
    return url


def field(answer: Any, name: str, kind: type, service: str) -> Any:
    """A field of an answer.

    Raises:
        ServiceError: the answer is of another form.
    """
    found = answer.get(name) if isinstance(answer, Mapping) else None
    if not isinstance(found, kind):
        raise ServiceError(
            f"the server does not answer as {service} does (no {name}): is it its address?"
        )
    return found


class _PassingError(Exception):
    """A failure that may pass."""

    def __init__(self, error: ServiceError, after: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.after = after


class Connection:
    """A service at an address."""

    def __init__(
        self,
        url: str,
        *,
        keys: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        wait: tenacity.wait.wait_base | None = None,
    ) -> None:
        """
        Args:
            keys: the secrets in headers and auth by the environment variable that they are from;
                an empty one was not set.
            auth: user and password.
        """
        self.url = url
        self._variables = " and ".join(keys)
        self._secrets = [Secret(value) for value in keys.values() if value]
        self._client = httpx.Client(
            headers=dict(headers or {}),
            auth=auth,
            timeout=httpx.Timeout(TIMEOUT, connect=CONNECT),
            trust_env=urlsplit(url).scheme == "https",
        )
        weakref.finalize(self, self._client.close)
        random = tenacity.wait_random_exponential(multiplier=0.5, max=10)
        self._pause = wait or random

    def get(self, path: str, **asked: Any) -> Any:
        """The JSON at a path."""
        return self.ask("GET", path, params=asked)

    def post(self, path: str, body: Any, **asked: Any) -> Any:
        """The JSON reply to a JSON body."""
        return self.ask("POST", path, json=body, params=asked)

    def ask(self, method: str, path: str, **request: Any) -> Any:
        """The JSON reply to a request, as for httpx; None for an empty or other reply.

        Raises:
            ServiceError: the service cannot be reached, failed or refused.
            UsageError: it does not take the key.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_PassingError),
            stop=tenacity.stop_after_attempt(TRIES),
            wait=self._wait,
            reraise=True,
        )
        try:
            return retrying(self._ask, method, path, request)
        except _PassingError as passing:
            raise passing.error from None

    def _wait(self, state: tenacity.RetryCallState) -> float:
        failed = state.outcome.exception() if state.outcome else None
        after = failed.after if isinstance(failed, _PassingError) else 0.0
        return after + self._pause(state)

    def _ask(self, method: str, path: str, request: Mapping[str, Any]) -> Any:
        try:
            answer = self._client.request(method, f"{self.url}{path}", **request)
        except httpx.HTTPError as error:
            why = self._clean(str(error)) or type(error).__name__
            told = f"{self.url} cannot be reached: {why}; start it, or correct the address"
            raise _PassingError(ServiceError(told, down=True)) from None
        status = answer.status_code
        if status in (401, 403):
            raise UsageError(
                f"{self.url} does not take the key, or wants one (status {status}): give it by "
                f"the environment variable {self._variables}"
            )
        if not answer.is_success:
            said = self._clean(_said(answer))
            refused = ServiceError(f"{self.url}{path} answers {status}: {said}", status=status)
            if status in PASSING:
                raise _PassingError(refused, _after(answer))
            raise refused
        try:
            return json_value(answer.content) if answer.content else None
        except ValueError:
            return None

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = shown(text, secret)
        return " ".join(text.split())[:300]


def _said(answer: httpx.Response) -> str:
    try:
        body = json_value(answer.content)
    except ValueError:
        return answer.content.decode(errors="replace") or answer.reason_phrase
    told = body.get("detail") or body.get("message") or body if isinstance(body, dict) else body
    return told if isinstance(told, str) else json.dumps(told)


def _after(answer: httpx.Response) -> float:
    try:
        seconds = float(answer.headers.get("retry-after", "0"))
    except ValueError:
        return 0.0
    return min(max(0.0, seconds), LONGEST_WAIT) if math.isfinite(seconds) else 0.0
