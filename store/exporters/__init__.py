"""Stored runs as files, one format per file."""
