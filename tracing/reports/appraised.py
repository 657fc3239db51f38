"""A measurement of a run: its credits, and the record of when and at what cost.

A run may have several. Tables show one, which is all credits with one provenance: shares of one
seed do not sum to the total of another. `shown` is the only rule of which one that is.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from hopscope.runtime.errors import UsageError

if TYPE_CHECKING:
    from hopscope.runtime.types import Appraisal, Credit, GameValues, Provenance

Key = TypeVar("Key")


class Appraised(NamedTuple):
    """What was measured, and when and at what cost."""

    credits: "list[Credit]"
    appraisal: "Appraisal"
    games: "Sequence[GameValues]" = ()
    """The values of the coalitions that were measured."""


def shown(credits: Iterable[tuple[Key, bool, bool]]) -> Key | None:
    """The appraisal of a run that is shown: the latest of those that measured the whole run (a
    `total` by any meter). Where none did, because of a credit budget that was too small, the latest
    that has a total, else the latest.

    Args:
        credits: of each credit of the run its appraisal, whether it is a total, and whether it has
            a value; in the order of measurement, as the store returns credits.
    """
    found, best = None, 0
    for key, total, measured in credits:
        rank = total + (total and measured)
        if rank >= best:
            found, best = key, rank
    return found


def shown_provenance(credits: "Iterable[Credit]") -> "Provenance | None":
    """The provenance of the appraisal that is shown, from all credits of a run."""
    return shown(
        (c.provenance, c.step is None and c.rule == "total", c.measurement.value is not None)
        for c in credits
    )


def selected_provenance(
    credits: "Iterable[Credit]", settings_hash: str | None
) -> "Provenance | None":
    """The provenance whose hash begins with `settings_hash`, or else the one that is shown.

    Raises:
        UsageError: no appraisal, or more than one, has such a hash.
    """
    given = list(credits)
    if settings_hash is None:
        return shown_provenance(given)
    known = {credit.provenance.settings_hash: credit.provenance for credit in given}
    matches = [name for name in known if name.startswith(settings_hash)]
    if len(matches) != 1:
        names = ", ".join(name[:8] for name in known) or "there are none"
        raise UsageError(f"{settings_hash!r} does not name one of the appraisals: {names}")
    return known[matches[0]]


def shown_credits(credits: "Iterable[Credit]") -> "list[Credit]":
    """The credits of the appraisal that is shown."""
    given = list(credits)
    provenance = shown_provenance(given)
    return [credit for credit in given if credit.provenance == provenance]
