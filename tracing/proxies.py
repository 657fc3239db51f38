"""The reader that measured runs, where it is not the one that ran them: a proxy.

The run has the name of the reader that ran, the provenance of its credits that of the reader that
measured. Whether that is a proxy follows, and is stored nowhere else.
"""

from collections.abc import Mapping

from hopscope.runtime.texts.counting import counted


def is_proxy(ran: str, measured: str) -> bool | None:
    """Whether another reader ran than the one that measured; None if it is unknown which ran, and
    `ran` empty."""
    return measured != ran if ran else None


def told(ran: str, measured: str) -> str | None:
    """The remark on a run's measurement; None if the run's own reader measured it."""
    return told_of_runs({ran: 1}, measured)


def told_of_runs(ran: Mapping[str, int], measured: str) -> str | None:
    """The remark on a measurement of runs; None if each was measured by its own reader.

    Args:
        ran: the number of runs by the reader that ran them, which is empty if unknown.
    """
    if set(ran) <= {measured}:
        return None
    if len(ran) > 1:
        ordered = sorted(ran.items(), key=lambda each: (not each[0], each[0]))
        parts = (_part(reader, runs, measured) for reader, runs in ordered)
        return f"measured by {measured}: {', '.join(parts)}"
    [reader] = ran
    if is_proxy(reader, measured):
        return f"measured by the proxy {measured}; the reader that ran is {reader}"
    return f"measured by {measured}; the reader that ran is unknown"


def _part(ran: str, runs: int, measured: str) -> str:
    several = counted(runs, "run")
    match is_proxy(ran, measured):
        case None:
            return f"the reader of {several} is unknown"
        case True:
            return f"a proxy for {ran} in {several}"
        case False:
            return f"the own reader of {several}"
