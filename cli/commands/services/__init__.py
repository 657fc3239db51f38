"""`hopscope push` and `pull`."""
