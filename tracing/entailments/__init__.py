"""Entailment models by file name: what `--entailment` and `hopscope list entailments` know."""

KIND = "entailments"
"""What `hopscope list` and entry points call them; see `runtime.components`."""
