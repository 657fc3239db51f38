"""Entailment models by file name: what `--entailment` and `hopscope list entailments` know."""
