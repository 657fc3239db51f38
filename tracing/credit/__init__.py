"""Credit rules by file name: each shares the utility of a run's evidence among its steps."""

KIND = "rules"
"""The name of this kind in `hopscope list` and entry points; see `runtime.components`."""
