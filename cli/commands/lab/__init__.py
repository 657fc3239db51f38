"""`hopscope lab`: test the measurements against a known truth."""
