"""Components of other installed distributions, found by their entry points:

    [project.entry-points."hopscope.workflows"]
    my_workflow = "my_package.my_workflow"

The group is `hopscope.` and the kind in `hopscope list`. The entry point names a module with a
typed `build(...)`. A module is imported only when its component is requested by name.
"""

import re
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import NamedTuple

from hopscope.runtime.errors import UsageError


class Offer(NamedTuple):
    """A component that a distribution offers."""

    name: str
    distribution: str
    """Its name and version."""
    point: EntryPoint


def offers(kind: str) -> list[Offer]:
    """The installed components of a kind, sorted."""
    return sorted(map(_offer, entry_points(group=f"hopscope.{kind}")))


def occur(text: str) -> bool:
    """Whether the name of a component of another distribution, of any kind, is a word of a text."""
    groups = (each for each in entry_points().groups if each.startswith("hopscope."))
    names = {point.name for group in groups for point in entry_points(group=group)}
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) for name in names)


def _offer(point: EntryPoint) -> Offer:
    origin = point.dist
    told = f"{origin.name} {origin.version}" if origin else "an unnamed distribution"
    return Offer(point.name, told, point)


def load(kind: str, offer: Offer) -> ModuleType:
    """The component's module.

    Raises:
        UsageError: it cannot be imported, or is no component; the message names the distribution.
    """
    what = f"{offer.name} among {kind} comes from {offer.distribution}"
    remedy = f"upgrade or uninstall {offer.distribution.partition(' ')[0]}"
    try:
        module = offer.point.load()
    except (Exception, SystemExit) as error:  # importing foreign code can raise anything
        raise UsageError(
            f"{what} and cannot be imported ({type(error).__name__}: {error}): {remedy}"
        ) from error
    if not (isinstance(module, ModuleType) and callable(getattr(module, "build", None))):
        raise UsageError(
            f"{what}, whose entry point {offer.point.value} is no module with build(...): {remedy}"
        )
    return module
