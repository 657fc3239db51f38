"""When to look at an interval while samples come in, so that stopping early does not break it.

Whoever stops as soon as an interval is narrow sees many intervals and picks one, which covers the
truth less often than each alone. So the sizes to look at are fixed beforehand, K of them, and
each look's interval has level 1 - (1 - level)/K: by Bonferroni's inequality all K together cover
with at least `level`, and with them the one that is stopped at, whatever the rule for stopping.
This is a group sequential design with a fixed number of looks (Pocock 1977) and the error spent
in equal parts (Lan & DeMets 1983); sizes double, which keeps K small.
"""

from math import ceil

from hopscope.tracing.intervals import LEVEL

FIRST = 5
"""No look at fewer samples, unless there are fewer."""


def sizes(samples: int) -> tuple[int, ...]:
    """At how many samples to look, ascending; the last is `samples`."""
    found = [samples]
    while (half := ceil(found[-1] / 2)) >= FIRST and half < found[-1]:
        found.append(half)
    return tuple(reversed(found))


def level_each(looks: int, level: float = LEVEL) -> float:
    """The level of the interval at each of so many looks."""
    return 1 - (1 - level) / looks
