"""Detects the files of a corpus, their kinds by name, and the layout of their records.

A folder is a dataset of `save_to_disk`, or BEIR's folder with its `corpus.jsonl`, or all files
below it with the suffix of one kind; Markdown, text and PDF may be mixed.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from hopscope.runtime import components
from hopscope.runtime.corpora import files, layouts
from hopscope.runtime.corpora.records.fields import keys
from hopscope.runtime.corpora.records.json_records import GZIP_MAGIC
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.errors import CorpusError, UsageError

AUTO = "auto"
PROSE = ("markdown", "text", "pdf")
BEIR = ("corpus.jsonl", "corpus.jsonl.gz")
_STARTS = {b"{": "json", b"[": "json", b"%PDF": "pdf", b"PAR1": "parquet"}
"""First bytes of files whose names do not tell their kind."""


def formats() -> list[str]:
    """The values of `--format`."""
    return [AUTO, *components.names(files), *components.names(layouts)]


def layouts_known() -> list[str]:
    """The formats that are layouts of records."""
    return components.names(layouts)


def check(format: str) -> None:
    """
    Raises:
        UsageError: the format is unknown; the message lists the known ones.
    """
    if format not in formats():
        raise UsageError(f"no format {format!r}: choose from {', '.join(formats())}")


def found(place: Path, format: str) -> list[tuple[Path, ModuleType]]:
    """The files of a corpus in order, each with the module that reads it.

    Raises:
        CorpusError: there are no files, or they are of several kinds.
    """
    requested = format if format in components.names(files) else None
    try:
        if place.is_dir():
            return _folder(place, requested)
        if not place.is_file():
            raise CorpusError(f"{place} does not exist: give a file or a folder of passages")
        if requested == "datasets":
            raise CorpusError(f"{place} is a file: give the folder that save_to_disk wrote")
        return [(place, _module(files, requested or _named(place) or _begun(place)))]
    except OSError as error:
        raise CorpusError(f"{place} cannot be read: {error.strerror}") from None


def layout(value: Mapping[str, Any], format: str) -> ModuleType:
    """The layout of a record.

    Raises:
        MalformedRecordError: no known layout matches.
    """
    names = components.names(layouts)
    if format in names:
        return _module(layouts, format)
    for name in names:
        module = _module(layouts, name)
        if module.matches(value):
            return module
    if "question" in value:
        problem = "a question without passages"
    else:
        problem = f"no 'text' among the keys {keys(value)}"
    raise MalformedRecordError(
        f"{problem}: give passages in one of the layouts {', '.join(names)}, or name the field "
        "that holds the text with --text"
    )


def _folder(place: Path, requested: str | None) -> list[tuple[Path, ModuleType]]:
    saved = _module(files, "datasets")
    if requested == "datasets" or (requested is None and saved.matches(place)):
        return [(place, saved)]
    if requested is None and (beir := [place / name for name in BEIR if (place / name).is_file()]):
        return [(beir[0], _module(files, "json"))]
    paths = sorted(
        path
        for path in place.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(place).parts)
    )
    kinds = {path: kind for path in paths if (kind := _named(path))}
    chosen = {requested} if requested else set(PROSE) & set(kinds.values()) or set(kinds.values())
    if not kinds.keys() or not chosen & set(kinds.values()):
        ends = ", ".join(end for name in components.names(files) for end in _suffixes(name))
        raise CorpusError(
            f"{place} has no file with one of the suffixes {ends}: give another folder"
        )
    if len(chosen) > 1 and not chosen <= set(PROSE):
        raise CorpusError(
            f"{place} has files of several kinds ({', '.join(sorted(chosen))}): choose one with "
            "--format"
        )
    return [(path, _module(files, kind)) for path, kind in kinds.items() if kind in chosen]


def _named(path: Path) -> str | None:
    """The kind of a file by its name; None if the name does not tell."""
    name = path.name.lower().removesuffix(".gz")
    fitting = (kind for kind in components.names(files) if name.endswith(_suffixes(kind) or ("/",)))
    return next(fitting, None)


def _begun(path: Path) -> str:
    """The kind of a file by its first bytes; JSON if it is gzipped or empty."""
    with path.open("rb") as file:
        start = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    for begins, kind in _STARTS.items():
        if start.startswith(begins):
            return kind
    if not start or start.startswith(GZIP_MAGIC):
        return "json"
    names = ", ".join(components.names(files))
    raise CorpusError(
        f"{path}: neither its name nor its first bytes tell its kind; give --format with one of "
        f"{names}"
    )


def _suffixes(kind: str) -> tuple[str, ...]:
    suffixes: tuple[str, ...] = _module(files, kind).SUFFIXES
    return suffixes


def _module(package: ModuleType, name: str) -> ModuleType:
    return import_module(f"{package.__name__}.{name}")
