"""The files that `hopscope new` writes, with `$NAME` and `$Name` for the names."""
