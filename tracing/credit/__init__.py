"""Credit rules by file name: how the worth of a run's evidence is shared among its steps."""
