"""Readers: language models, named by the file or folder that loads them."""

KIND = "readers"
"""What `hopscope list` and entry points call them; see `runtime.components`."""
