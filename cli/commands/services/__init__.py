"""`hopscope push`, `pull` and `labels`."""
