"""Pairs of texts and their relations: entailment, clusters of one meaning."""
