"""Rerankers: the same passages in another order, named by file."""

KIND = "rerankers"
"""What `hopscope list` and entry points call them; see `runtime.components`."""
