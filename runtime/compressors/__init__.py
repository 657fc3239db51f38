"""Compressors: the same passages in fewer tokens, named by file."""

KIND = "compressors"
"""Their name in `hopscope list` and in entry points; see `runtime.components`."""
