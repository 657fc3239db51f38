"""Similarities of texts, one file each."""
