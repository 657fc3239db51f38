"""Fusions: several rankings as one, named by file."""

KIND = "fusions"
"""What `hopscope list` and entry points call them; see `runtime.components`."""
