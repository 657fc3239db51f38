"""Workflows: one graph each, named by its file or folder."""

KIND = "workflows"
"""Their name in `hopscope list` and in entry points; see `runtime.components`."""
