"""Kinds of files, one module each.

A kind is a module with `SUFFIXES`, the endings of its files without `.gz`, and `read(path,
reading, columns)`, which gives the records of one file as it goes through it.
"""
