"""The passages that a file of questions gives beside each question."""

from collections.abc import Sequence
from importlib import import_module

from hopscope.lab import datasets
from hopscope.lab.dataset import topics
from hopscope.lab.dataset.dataset import EMBEDDED, Dataset
from hopscope.lab.datasets import Judged, Malformed
from hopscope.runtime.places import expanded


def passages(place: str, data: Dataset) -> list[Sequence[Judged]]:
    """For each question of a loaded file its passages, in the order of the file.

    Raises:
        CorpusError: a passage is malformed; the message has the line.
    """
    if place in EMBEDDED:
        return [()] * len(data.entries)
    form = import_module(f"{datasets.__name__}.{data.form}")
    records = topics.records(expanded(place))
    found: list[Sequence[Judged]] = []
    for record in records:
        try:
            found.append(form.passages(record.value))
        except Malformed as error:
            raise records.fail(record.line, str(error)) from None
    return found
