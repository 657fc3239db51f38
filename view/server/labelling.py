"""What a person says about a run: a form, stored as a label with who and when."""

import getpass
from datetime import UTC, datetime
from typing import Any

from hopscope.runtime.errors import UsageError
from hopscope.store.labels import Label, Target
from hopscope.store.store import Store

SOURCE = "view"
NAME = "judgment"
JUDGMENTS = ("right", "wrong", "useful", "useless", "unsure")
LONGEST = 10_000
"""Characters of a note."""


def author() -> str:
    """The user of this computer; empty if unknown."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def save(store: Store, run_id: str, form: dict[str, str]) -> Label:
    """Store the label of a form with the fields `place`, `label`, `note` and `author`.

    Raises:
        UsageError: the form says nothing, or names no place of the run.
    """
    place = form.get("place", "answer")
    judgment, note = form.get("label", ""), form.get("note", "").strip()
    if judgment and judgment not in JUDGMENTS:
        raise UsageError(f"{judgment!r} is no judgment: choose from {', '.join(JUDGMENTS)}")
    if len(note) > LONGEST:
        raise UsageError(f"the note has {len(note)} characters; {LONGEST} are the most")
    if not judgment and not note:
        raise UsageError("choose a judgment or write a note")
    run = store.load(run_id)
    at: dict[str, Any] = {"target": _target(place)}
    if place != "answer":
        if place not in [str(step.index) for step in run.steps]:
            raise UsageError(f"{place!r} names no step of the run")
        at["step"] = int(place)
    made = Label(
        run_id=run.id,
        name=NAME,
        label=judgment or None,
        note=note or None,
        author=form.get("author", "").strip() or author(),
        source=SOURCE,
        made=datetime.now(UTC),
        **at,
    )
    store.labels.save([made])
    return made


def _target(place: str) -> Target:
    return "answer" if place == "answer" else "step"


def labels(store: Store, run_id: str) -> list[Label]:
    """The labels of a run, of every source, the oldest first."""
    return store.labels.of([run_id]).get(run_id, [])
