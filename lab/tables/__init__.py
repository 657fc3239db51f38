"""Tables over experiments: one file each, with `build(results) -> list[Table]`."""

KIND = "tables"
"""Their name in `hopscope list` and in entry points; see `runtime.components`."""
