"""Metrics of an answer's quality, one per file, each with `build(...)`."""

KIND = "metrics"
"""Their name in `hopscope list` and in entry points; see `runtime.components`."""
