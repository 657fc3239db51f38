"""A client of an OpenSearch service, and the meaning of its errors.

Only the service that the user named is contacted: redirects are not followed, and proxies of the
environment are not used. Credentials come only from the environment; no address, record, log or
message contains them.

    OPENSEARCH_USERNAME, OPENSEARCH_PASSWORD    both, or
    OPENSEARCH_API_KEY                          as Elasticsearch gives them out
    OPENSEARCH_CA_CERTS                         a file of certificates to trust
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hopscope.runtime.addresses import without_credentials
from hopscope.runtime.errors import MissingExtraError, RetrieverError, UsageError
from hopscope.runtime.texts.secrecy import LONGEST, Secret, shown

USERNAME, PASSWORD, API_KEY = "OPENSEARCH_USERNAME", "OPENSEARCH_PASSWORD", "OPENSEARCH_API_KEY"
CA_CERTS = "OPENSEARCH_CA_CERTS"
_INDEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True)
class IndexAddress:
    """The place of an index."""

    service: str
    index: str

    def __str__(self) -> str:
        return f"{self.service}/{self.index}"


def address(url: str) -> IndexAddress:
    """The service and the index that `http://HOST:PORT/INDEX` names.

    Raises:
        UsageError: the address names no index, or holds credentials.
    """
    parts = without_credentials(url, f"give them by {USERNAME} and {PASSWORD}")
    path, _, index = parts.path.rstrip("/").rpartition("/") if parts else ("", "", "")
    if not parts or parts.query or parts.fragment or not _INDEX.fullmatch(index):
        raise UsageError(
            f"{url!r} names no index of a service: give http://HOST:PORT/INDEX, where INDEX is of "
            "lower-case letters, digits, dots, hyphens and underscores and begins with one of the "
            "first two"
        )
    return IndexAddress(f"{parts.scheme}://{parts.netloc}{path}", index)


def connect(service: str, *, timeout: float, env: Mapping[str, str] = os.environ) -> Any:
    """A client; nothing is sent yet. Threads may share it.

    Raises:
        MissingExtraError: opensearch-py is not installed.
        UsageError: the environment has incomplete or contradictory credentials.
    """
    try:
        from opensearchpy import OpenSearch
    except ImportError:
        raise MissingExtraError("an index on an OpenSearch service", "opensearch") from None
    if not 0 < timeout < float("inf"):
        raise UsageError("OpenSearch: timeout must be more than 0 seconds")
    user, password, key = (env.get(name) for name in (USERNAME, PASSWORD, API_KEY))
    if bool(user) != bool(password):
        raise UsageError(f"set both {USERNAME} and {PASSWORD}, or neither")
    if user and key:
        raise UsageError(f"set either {API_KEY} or {USERNAME} and {PASSWORD}")
    certificates = env.get(CA_CERTS)
    if certificates and not os.path.isfile(certificates):
        raise UsageError(f"{CA_CERTS} names no file: {certificates}")
    return OpenSearch(
        hosts=[service],
        http_auth=(user, password) if user and password else None,
        headers={"authorization": f"ApiKey {key}"} if key else None,
        ca_certs=certificates or None,
        timeout=timeout,
        max_retries=1,
    )


@contextmanager
def asking(where: IndexAddress) -> Iterator[None]:
    """Turn the client's errors into ours.

    Raises:
        RetrieverError: the service cannot be reached, refuses, or fails.
    """
    from opensearchpy import exceptions as errors

    # The client's own messages contain the request, but no advice.
    try:
        yield
    except errors.AuthenticationException:
        raise RetrieverError(
            f"{where.service} does not take these credentials, or wants some (status 401): set "
            f"{USERNAME} and {PASSWORD}, or {API_KEY}"
        ) from None
    except errors.AuthorizationException as error:
        raise RetrieverError(
            f"{where.service} does not let this user do that with {where.index} (status 403): "
            f"{_reason(error)}"
        ) from None
    except errors.SSLError as error:
        raise RetrieverError(
            f"the certificate of {where.service} is not trusted ({_reason(error)}): give the file "
            f"of its authority by {CA_CERTS}"
        ) from None
    except errors.ConnectionTimeout:
        raise RetrieverError(f"{where.service} gave no answer in time") from None
    except errors.ConnectionError as error:
        raise RetrieverError(f"{where.service} cannot be reached: {_reason(error)}") from None
    except errors.TransportError as error:
        raise RetrieverError(
            f"{where.service} answered with status {error.status_code}: {_reason(error)}"
        ) from None
    except errors.OpenSearchException:
        raise _strange(where) from None


@contextmanager
def reading(where: IndexAddress) -> Iterator[None]:
    """As `asking`, for blocks that also parse the answer.

    Raises:
        RetrieverError: as `asking`, or the answer does not follow OpenSearch's API.
    """
    try:
        with asking(where):
            yield
    except (LookupError, TypeError, ValueError, AttributeError):
        raise _strange(where) from None


def said(error: Any) -> str:
    """The innermost reason of the service's error."""
    while isinstance(error, Mapping):
        causes = error.get("root_cause") or error.get("failed_shards")
        inner = error.get("caused_by") or (causes[0] if causes else None) or error.get("error")
        reason = error.get("reason")
        error = inner if isinstance(inner, Mapping) else reason or error.get("type") or "no reason"
    return _clean(error)


def _strange(where: IndexAddress) -> RetrieverError:
    return RetrieverError(
        f"{where.service} does not answer as OpenSearch does: is this its address?"
    )


def _reason(error: Any) -> str:
    info = error.info
    if isinstance(info, Mapping):
        return said(info)
    cause = info or error.error or "no reason"
    return _clean(str(cause).rpartition(": ")[2])


def _clean(told: Any) -> str:
    """Text of the service made safe for a message: without secrets and control characters."""
    text = str(told)[:LONGEST]
    for name in (PASSWORD, API_KEY):
        text = Secret(os.environ.get(name, "")).hide(text)
    return shown(text, Secret(""))
