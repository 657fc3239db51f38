"""Layouts of records, one module each.

A layout is a module with `matches(value)`, true of its records, and `read(value)`, which gives the
passages of one record or raises `Malformed`.
"""
