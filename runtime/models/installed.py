"""Whether models can run in this process: torch and transformers are the extra `local`."""

from importlib.util import find_spec

from hopscope.runtime.errors import MissingExtraError

LIBRARIES = ("torch", "transformers")


def installed() -> bool:
    """Whether the libraries are there; they are not imported."""
    return all(find_spec(name) is not None for name in LIBRARIES)


def require(feature: str, *, instead: str = "") -> None:
    """
    Args:
        feature: what needs the libraries, for the message.
        instead: what goes without them.

    Raises:
        MissingExtraError: they are not installed.
    """
    if not installed():
        raise MissingExtraError(feature, "local", instead=instead)
