"""Layouts of records, one module each.

A layout is a module with `matches(value)`, true for its records, and `read(value)`, which yields
the passages of one record or raises `MalformedRecordError`.
"""
