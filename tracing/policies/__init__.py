"""Policies (stop rules) by file name: each decides whether the run retrieves again.

A new one is a file with `build(...) -> Policy` (`runtime.ports`); copy `fixed.py`. Policies may use
the reader and meters; the run pays for it.
"""

KIND = "policies"
"""The name of this kind in `hopscope list` and entry points; see `runtime.components`."""
