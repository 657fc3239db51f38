"""Rerankers: the same passages in another order, named by file."""

KIND = "rerankers"
"""Their name in `hopscope list` and in entry points; see `runtime.components`."""
