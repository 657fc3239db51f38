"""Validity suites: one file each, with `build(inputs) -> list[Table]`.

A suite measures a meter, a credit rule or a workflow where the truth is known: on a world made
from a seed (see `lab.suites.worlds`). Its figures are those of its tables (see
`lab.suites.figures`).
"""

KIND = "suites"
"""What `hopscope list` and entry points call them; see `runtime.components`."""
