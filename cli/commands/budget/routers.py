"""What the commands that read a router or outcomes have in common."""

from typing import TYPE_CHECKING

from hopscope.api.views import render
from hopscope.runtime.texts.counting import counted

if TYPE_CHECKING:
    from hopscope.lab.budget.outcomes import Outcomes
    from hopscope.runtime.specs import Spec


def without_options(spec: "Spec") -> None:
    """
    Raises:
        UsageError: a policy has options, which are for runs.
    """
    from hopscope.runtime.errors import UsageError

    if spec.options:
        key = spec.options[0][0]
        raise UsageError(
            f"{spec}: the file is taken as it is here; leave out {key}, an option of `run` and "
            "`eval`"
        )


def note_outcomes(left_out: int, assumed: dict[str, str], unit: str) -> None:
    if left_out:
        render.note(f"{counted(left_out, 'row lacks', 'rows lack')} an arm: left out")
    for arm, source in assumed.items():
        render.note(f"rows do not tell the {unit} of {arm}: {source}")


def note_repeated(found: "Outcomes") -> None:
    repeated = len(found.rows) - len(found.distinct.rows)
    if repeated:
        render.note(
            f"{counted(repeated, 'row repeats', 'rows repeat')} a question, which counts once in a "
            "promise"
        )
