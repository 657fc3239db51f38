"""Compressors: the same passages in fewer tokens, named by file."""

KIND = "compressors"
"""What `hopscope list` and entry points call them; see `runtime.components`."""
