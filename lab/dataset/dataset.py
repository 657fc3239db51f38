"""The questions of a file, whatever form it has, all checked before the first is asked.

The form is told from the first record, and every other must have it too. `hopland:dev` and
`hopland:test` name the questions that come with the package.
"""

from importlib import import_module
from importlib.resources import as_file, files
from pathlib import Path
from types import ModuleType

from hopscope.lab import datasets
from hopscope.lab.dataset.ordering import Order, stratified
from hopscope.lab.datasets import Malformed
from hopscope.runtime import components
from hopscope.runtime.corpora.records.json_records import JsonRecords
from hopscope.runtime.errors import CorpusError, UsageError
from hopscope.runtime.types import Record, digest
from hopscope.store.experiments.records import DatasetEntry

EMBEDDED = ("hopland:dev", "hopland:test")


class Dataset(Record):
    """Questions, in the order of the file."""

    name: str
    """The file's name without endings; what an experiment is called by default."""
    form: str
    entries: tuple[DatasetEntry, ...]
    replaced: int = 0
    """Questions in which U+FFFD stands for half of a surrogate pair."""

    @property
    def digest(self) -> str:
        """Hash of all questions and what is told of them; the same for the same in another form or
        place."""
        return digest(*(entry.hash for entry in self.entries))

    def choose(
        self, *, limit: int | None = None, ids: tuple[str, ...] = (), order: Order = "file"
    ) -> list[DatasetEntry]:
        """The questions of these ids, as they are named; or all in that order; of them the first
        `limit`.

        Raises:
            UsageError: there is no question of such an id.
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
    """The name of embedded questions, or the full path of a file, which any folder can use."""
    return str(data) if str(data) in EMBEDDED else str(Path(data).expanduser().resolve())


def load(place: str) -> Dataset:
    """Read and check a file of JSON lines or one JSON list, which may be gzipped.

    Raises:
        UsageError: there are no embedded questions of such a name.
        CorpusError: a record is broken, of no known form, or comes twice; the message has the line.
    """
    if place in EMBEDDED:
        split = place.partition(":")[2]
        source = files("hopscope.runtime.corpora").joinpath(
            "hopland_data", f"questions-{split}.jsonl"
        )
        with as_file(source) as path:
            return _load(path, name=place.replace(":", "-"))
    path = Path(place).expanduser()
    if place.partition(":")[0] == "hopland" and not path.exists():
        raise UsageError(f"no questions {place!r} come along: choose from {', '.join(EMBEDDED)}")
    return _load(path, name=path.name.partition(".")[0] or path.name)


def _stratum(entry: DatasetEntry) -> tuple[str, str]:
    """Number of hops and kind, as far as these are known."""
    return str(entry.hops), entry.kind


def _load(path: Path, *, name: str) -> Dataset:
    records = JsonRecords(path)
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
        raise CorpusError(f"{path} holds no questions: give one JSON object a line")
    return Dataset(
        name=name, form=_name(form), entries=tuple(entries), replaced=records.reading.replaced
    )


def _form(record: dict[str, object]) -> ModuleType:
    """The form of a record.

    Raises:
        Malformed: it has none that is known.
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
