"""Tables over experiments: one file each, with `build(results) -> list[Table]`."""

KIND = "tables"
"""What `hopscope list` and entry points call them; see `runtime.components`."""
