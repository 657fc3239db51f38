"""Experiments in SQL: records, reading, writing, result rows."""
