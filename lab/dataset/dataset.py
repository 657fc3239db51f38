"""The questions of a file in any known form, all checked before the first run.

The first record determines the form, which every other record must have, too. `hopland:dev` and
`hopland:test` name the embedded questions.
"""

from importlib import import_module
from importlib.resources import as_file, files
from pathlib import Path
from types import ModuleType

from hopscope.lab import datasets
from hopscope.lab.dataset import topics
from hopscope.lab.dataset.ordering import Order, stratified
from hopscope.lab.datasets import Malformed
from hopscope.runtime import components
from hopscope.runtime.errors import CorpusError, UsageError
from hopscope.runtime.places import expanded
from hopscope.runtime.types import Record, digest
from hopscope.store.experiments.records import DatasetEntry

EMBEDDED = ("hopland:dev", "hopland:test")


class Dataset(Record):
    """Questions, in the order of the file."""

    name: str
    """The file's name without endings; the default name of an experiment."""
    form: str
    entries: tuple[DatasetEntry, ...]
    replaced: int = 0
    """The number of questions in which U+FFFD replaces half of a surrogate pair."""

    @property
    def digest(self) -> str:
        """Hash of all questions with their properties, independent of the file's form and place."""
        return digest(*(entry.hash for entry in self.entries))

    def choose(
        self, *, limit: int | None = None, ids: tuple[str, ...] = (), order: Order = "file"
    ) -> list[DatasetEntry]:
        """The questions with these ids, in the order of the ids, or else all in this order; of
        them the first `limit`.

        Raises:
            UsageError: no question has such an id.
        """
        chosen = (
            list(self.entries)
            if order == "file"
            else stratified(self.entries, stratum=_stratum, key=lambda entry: entry.hash)
        )
        if ids:
            known = {entry.question.id: entry for entry in self.entries if entry.question.id}
            for id in ids:
                if id not in known:
                    some = ", ".join(list(known)[:3]) or "none: its questions have no ids"
                    raise UsageError(f"no question {id!r} in {self.name}; its ids are like {some}")
            chosen = [known[id] for id in dict.fromkeys(ids)]
        return chosen[:limit]


def location(data: str | Path) -> str:
    """The name of embedded questions, or the full path of a file, valid from any folder."""
    return str(data) if str(data) in EMBEDDED else str(expanded(data).resolve())


def load(place: str) -> Dataset:
    """Read and check a file of any form that `topics` reads.

    Raises:
        UsageError: no embedded questions have this name.
        CorpusError: a record is malformed, of no known form, or repeated; the message has the line.
    """
    if place in EMBEDDED:
        split = place.partition(":")[2]
        source = files("hopscope.runtime.corpora").joinpath(
            "hopland_data", f"questions-{split}.jsonl"
        )
        with as_file(source) as path:
            return _load(path, name=place.replace(":", "-"))
    path = expanded(place)
    if place.partition(":")[0] == "hopland" and not path.exists():
        raise UsageError(f"no embedded questions {place!r}: choose from {', '.join(EMBEDDED)}")
    return _load(path, name=path.name.partition(".")[0] or path.name)


def _stratum(entry: DatasetEntry) -> tuple[str, str]:
    """Number of hops and kind, if known."""
    return str(entry.hops), entry.kind


def _load(path: Path, *, name: str) -> Dataset:
    records = topics.records(path)
    form: ModuleType | None = None
    lines: dict[tuple[str, str], int] = {}
    entries: list[DatasetEntry] = []
    for record in records:
        try:
            form = form or _form(record.value)
            if not form.matches(record.value):
                raise Malformed(
                    f"not of the form {_name(form)} that the first record has; its keys are "
                    f"{_keys(record.value)}"
                )
            entry: DatasetEntry = form.read(record.value)
        except Malformed as error:
            raise records.fail(record.line, str(error)) from None
        asked = entry.question
        key = ("id", asked.id) if asked.id else ("question", asked.text)
        if key in lines:
            what, value = key
            advice = "ids must differ" if asked.id else "give each an id, or drop one"
            problem = f"the {what} {value!r} was already given on line {lines[key]}; {advice}"
            raise records.fail(record.line, problem)
        lines[key] = record.line
        entries.append(entry)
    if form is None:
        raise CorpusError(f"{path} holds no questions; {topics.FORMS}")
    return Dataset(
        name=name, form=_name(form), entries=tuple(entries), replaced=records.reading.replaced
    )


def _form(record: dict[str, object]) -> ModuleType:
    """The form of a record.

    Raises:
        Malformed: the form is unknown.
    """
    names = components.names(datasets)
    for name in names:
        module = import_module(f"{datasets.__name__}.{name}")
        if module.matches(record):
            return module
    raise Malformed(
        f"of none of the known forms ({', '.join(names)}); its keys are {_keys(record)}: give each "
        'record at least "question", and "answers", a list'
    )


def _name(form: ModuleType) -> str:
    return form.__name__.rpartition(".")[2]


def _keys(record: dict[str, object]) -> str:
    return ", ".join(map(repr, record)) or "(none)"
