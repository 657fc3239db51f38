"""SePer end to end by its authors' algorithm and by ours; see credit_parts/authors.py."""

from typing import Any

from credit_parts import authors
from credit_parts.bench import Benchmark

from peer_parts.rounds import Table


def measure(bench: Benchmark) -> list[Table]:
    rows = []
    found: dict[str, Any] = authors.measure(bench)
    for label, row in found.items():
        whole = row["end to end"]
        rows.append(
            (
                label,
                f"{whole['authors']:.1f}",
                f"{whole['ours']:.1f}",
                f"{whole['median']:.1f} [{whole['of runs: least']:.1f}, {whole['greatest']:.1f}]",
                f"{row['greatest difference of credit']:.1g}",
            )
        )
    columns = ("", "authors, s", "ours, s", "times ours, of runs", "difference of credit")
    return [Table(f"SePer of {bench.limit} IRCoT runs, end to end", columns, rows)]
