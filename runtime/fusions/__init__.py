"""Fusions: several rankings as one, named by file."""

KIND = "fusions"
"""Their name in `hopscope list` and in entry points; see `runtime.components`."""
