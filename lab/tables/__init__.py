"""Tables over experiments: one file each, with `build(results) -> list[Table]`."""
