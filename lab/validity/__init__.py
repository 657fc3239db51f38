"""Validity suites: one file each, with `build(bench) -> list[Table]`.

A suite measures a meter, a credit rule or a workflow where the truth is known: on a world made
from a seed (see `_bench`). Its figures are those of its tables (see `_figures`).
"""
