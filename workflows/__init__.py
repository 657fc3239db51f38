"""Workflows: one graph each, named by its file or folder."""

KIND = "workflows"
"""What `hopscope list` and entry points call them; see `runtime.components`."""
