"""Readers: language models, named by the file or folder that loads them."""

KIND = "readers"
"""Their name in `hopscope list` and in entry points; see `runtime.components`."""
