"""Validity suites: one file each, with `build(inputs) -> list[Table]`.

A suite tests a meter, a credit rule or a workflow against a known truth, in a world generated from
a seed (see `lab.suites.worlds`). Its figures are the cells of its tables (see
`lab.suites.figures`).
"""

KIND = "suites"
"""Their name in `hopscope list` and in entry points; see `runtime.components`."""
