"""How many answers each system gave."""

from hopscope.lab.experiments.results import Results
from hopscope.lab.table_forms.table import Table


def build(results: Results) -> list[Table]:
    rows = [
        {"system": system, "answers": sum(each.answer is not None for each in figures)}
        for system, figures in results.by_system.items()
    ]
    columns = {"system": "system", "answers": "answers"}
    return [Table(name="answers", title="Answers", columns=columns, rows=tuple(rows))]
