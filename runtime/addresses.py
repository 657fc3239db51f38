"""Addresses of services over HTTP. Records of runs hold them, so they must hold no credentials."""

from urllib.parse import SplitResult, urlsplit

from hopscope.runtime.errors import UsageError


def http_parts(url: str) -> SplitResult | None:
    """The parts of an address that begins with http:// or https:// and has a host; else None."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None


def without_credentials(url: str, instead: str) -> SplitResult | None:
    """`http_parts`; `instead` says how to give credentials.

    Raises:
        UsageError: the address holds credentials.
    """
    parts = http_parts(url)
    if parts and (parts.username or parts.password):
        raise UsageError(
            f"an address is stored with each run, so it must hold no credentials: {instead}"
        )
    return parts
