"""Runs validity suites by name, one after the other, with the same readers and world."""

import logging
from collections.abc import Iterator, Sequence
from importlib.resources import files
from time import perf_counter
from typing import NamedTuple

from hopscope.api import parts
from hopscope.api.presets import Presets
from hopscope.lab import validity
from hopscope.lab.suites import figures, worlds
from hopscope.lab.table_forms.table import Table
from hopscope.runtime import components
from hopscope.runtime.types import Measurement

_log = logging.getLogger(__name__)

SECONDS = {
    "eor": (0.4, 0.5),
    "erag": (0.0, 3.0),
    "gold_logprob": (0.3, 0.5),
    "grogu": (0.3, 0.6),
    "item": (0.0, 1.5),
    "proxy": (0.4, 2.0),
    "reward_hacking": (0.4, 0.5),
    "seper": (0.3, 0.6),
    "step_credit": (0.5, 0.6),
    "turn_rewards": (0.4, 0.6),
    "workflows_by_k": (0.0, 2.1),
}
"""Seconds of a suite by the embedded reader on one core: at its start, and for each question of
`--limit`."""
UNKNOWN = (1.0, 1.0)
"""The seconds of a suite without an entry."""


class Clock:
    """The time of suites: estimated at first, then corrected by finished suites."""

    def __init__(self, names: Sequence[str], limit: int) -> None:
        self._names = names
        self._left = {name: seconds(name, limit) for name in names}
        self._guessed = self._taken = 0.0

    def before(self, *, embedded: bool) -> str:
        several = f"{len(self._names)} suites: " if len(self._names) > 1 else "suite "
        long = f"about {_long(sum(self._left.values()))} on an idle core"
        if not embedded:
            long = "the first suite will show the time with this reader"
        return f"{several}{', '.join(self._names)}; {long}"

    def after(self, name: str, took: float) -> str:
        """Count a finished suite."""
        self._guessed += self._left.pop(name)
        self._taken += took
        told = f"suite {name}: {took:.0f} s"
        if not self._left:
            return told
        left = sum(self._left.values()) * self._taken / self._guessed
        return f"{told}; {len(self._left)} left, about {_long(left)}"


def seconds(name: str, limit: int) -> float:
    """The estimated time of a suite."""
    once, each = SECONDS.get(name, UNKNOWN)
    return once + each * limit


def _long(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


class SuiteOutcome(NamedTuple):
    """The result of one suite."""

    name: str
    tables: Sequence[Table]
    """Empty if it failed."""
    figures: dict[str, Measurement]
    """By name; a failed suite has only `error`, with the reason."""
    failed: bool


class Suites:
    """Suites that are ready to run."""

    def __init__(
        self,
        names: Sequence[str],
        reader: str,
        other: str | None,
        *,
        seed: int,
        limit: int,
        presets: Sequence[str] = (),
    ) -> None:
        """
        Args:
            names: empty runs all suites.
            reader: named as for `parts.reader`.
            other: a weaker second reader, likewise; by default the small one of the package, if
                installed.
            limit: questions of each kind.
            presets: named sets of options of the suites' meters.

        Raises:
            UsageError: there is no such suite, reader or preset.
        """
        chosen = Presets.named(presets)
        chosen.check(meters=worlds.METERS, workflows=())
        asked = list(dict.fromkeys(names)) or components.names(validity)
        self._suites = {name: components.load(validity, name).build for name in asked}
        other = other or _small()
        self._bench = worlds.make(
            parts.reader(reader),
            other=None if other is None else parts.reader(other),
            seed=seed,
            limit=limit,
            presets=chosen,
        )
        self._clock = Clock(asked, limit)
        self._embedded = reader == parts.TINY

    def run(self) -> Iterator[SuiteOutcome]:
        """Run the suites in turn. A failed suite is an outcome, too, and the others continue."""
        _log.warning(self._clock.before(embedded=self._embedded))
        for number, (name, build) in enumerate(self._suites.items(), start=1):
            _log.info(f"{name} ({number} of {len(self._suites)})")
            begun = perf_counter()
            try:
                made = build(self._bench)
                found = figures.figures(made)
            except Exception as error:  # whatever it is, the other suites do not depend on it
                _log.info("")
                reason = f"{type(error).__name__}: {error}"
                _log.warning(f"suite {name} failed: {reason}")
                self._clock.after(name, perf_counter() - begun)
                missing = Measurement(value=None, n=0, reason=reason)
                yield SuiteOutcome(name, (), {"error": missing}, failed=True)
                continue
            _log.info("")
            _log.warning(self._clock.after(name, perf_counter() - begun))
            yield SuiteOutcome(name, made, found, failed=False)


def _small() -> str | None:
    """The second reader of the package, if installed."""
    folder = files("hopscope.lab.hopland").joinpath("small")
    return f"hf:{folder}" if folder.joinpath("config.json").is_file() else None
