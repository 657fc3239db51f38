"""Retrievers: indexes and services, named by file or folder."""

KIND = "retrievers"
"""What `hopscope list` and entry points call them; see `runtime.components`."""
