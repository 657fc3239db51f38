"""Retrievers: indexes and services, named by file or folder."""

KIND = "retrievers"
"""Their name in `hopscope list` and in entry points; see `runtime.components`."""
