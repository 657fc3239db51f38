"""Writes the rows of an experiment as flat tables: runs, steps, decisions and credits."""

from collections.abc import Mapping
from pathlib import Path

from hopscope.lab.export import rows
from hopscope.lab.export.sheets import Form, sheet
from hopscope.lab.export.sources import done
from hopscope.store.store import Store


def write(
    store: Store, experiment: str, paths: Mapping[str, Path], form: Form, *, raw: bool
) -> None:
    """Write each table to the path of its name in `rows.SHEETS`.

    Args:
        raw: as for `sheet`.

    Raises:
        MissingExtraError: Parquet without the extra `parquet`.
        UsageError: a file cannot be written.
    """
    with (
        sheet(paths["runs"], rows.RUNS, form, raw=raw) as write_run,
        sheet(paths["steps"], rows.STEPS, form, raw=raw) as write_step,
        sheet(paths["decisions"], rows.DECISIONS, form, raw=raw) as write_decision,
        sheet(paths["credits"], rows.CREDITS, form, raw=raw) as write_credit,
    ):
        for item, run in done(store, experiment):
            write_run(rows.run_row(experiment, item, run))
            if run is None:
                continue
            for found, write_row in (
                (rows.step_rows(run), write_step),
                (rows.decision_rows(run), write_decision),
                (rows.credit_rows(run, store.credits(run.id)), write_credit),
            ):
                for row in found:
                    write_row(row)
