"""Utility meters by file name: each measures the value of evidence to a reader."""

from collections.abc import Mapping

KIND = "meters"
"""The name of this kind in `hopscope list` and entry points; see `runtime.components`."""
DEFAULT_METERS = ("seper", "seper_hard", "grogu")
"""The meters of a run unless others are named."""
VARIANTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "seper_hard": ("seper", {"kind": "hard"}),
    "gold_probability": ("gold_logprob", {"scale": "probability"}),
}
"""Meters that are another meter with an option set."""
PROMPT = "meter/answer"
"""The prompt of all meters."""
