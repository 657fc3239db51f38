"""When to check an interval during sampling, so that early stopping keeps its level.

Stopping as soon as an interval is narrow picks one of many intervals, and that one covers the truth
less often than each alone. So K sample sizes are fixed beforehand, and the interval at each of them
has level 1 - (1 - level)/K: by Bonferroni's inequality all K together cover with at least `level`,
and so does the last one, whatever the stopping rule.
This is a group sequential design with a fixed number of looks (Pocock 1977) and the error spent
in equal parts (Lan & DeMets 1983); sizes double, which keeps K small.
"""

from math import ceil

from hopscope.tracing.statistics.intervals import LEVEL

FIRST = 5
"""The fewest samples at a look, unless there are fewer in all."""


def sizes(samples: int) -> tuple[int, ...]:
    """The sample sizes to look at, ascending; the last is `samples`."""
    counts = [samples]
    while (half := ceil(counts[-1] / 2)) >= FIRST and half < counts[-1]:
        counts.append(half)
    return tuple(reversed(counts))


def level_each(looks: int, level: float = LEVEL) -> float:
    """The level of the interval at each look."""
    return 1 - (1 - level) / looks
