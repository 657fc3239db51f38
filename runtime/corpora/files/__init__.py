"""Kinds of files, one module each.

A kind is a module with `SUFFIXES`, the suffixes of its files without `.gz`, and `read(path,
reading, columns)`, which yields the records of one file.
"""
