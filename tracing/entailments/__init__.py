"""Entailment models by file name, as `--entailment` and `hopscope list entailments` know them."""

KIND = "entailments"
"""Their name in `hopscope list` and in entry points; see `runtime.components`."""
