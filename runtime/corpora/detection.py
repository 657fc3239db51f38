"""Which files a corpus has and what kind they are, told from names, and the layout of its records.

A folder is what `save_to_disk` wrote, or BEIR's with its `corpus.jsonl`, or the files below it that
are named as one of the kinds; of Markdown, text and PDF there may be all three.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from hopscope.runtime import components
from hopscope.runtime.corpora import files, layouts
from hopscope.runtime.corpora.fields import keys
from hopscope.runtime.corpora.reading import Malformed
from hopscope.runtime.errors import CorpusError, UsageError
from hopscope.runtime.json_records import GZIP_MAGIC

AUTO = "auto"
PROSE = ("markdown", "text", "pdf")
BEIR = ("corpus.jsonl", "corpus.jsonl.gz")
_STARTS = {b"{": "json", b"[": "json", b"%PDF": "pdf", b"PAR1": "parquet"}
"""How files begin whose names do not tell their kind."""


def formats() -> list[str]:
    """All that `--format` may name."""
    return [AUTO, *components.names(files), *components.names(layouts)]


def layouts_known() -> list[str]:
    """Those of the formats that are layouts of records."""
    return components.names(layouts)


def check(format: str) -> None:
    """
    Raises:
        UsageError: there is no such format; the message lists those there are.
    """
    if format not in formats():
        raise UsageError(f"no format {format!r}: choose from {', '.join(formats())}")


def found(place: Path, format: str) -> list[tuple[Path, ModuleType]]:
    """The files of a corpus in order, each with what reads it.

    Raises:
        CorpusError: there are none, or they are of several kinds.
    """
    wanted = format if format in components.names(files) else None
    try:
        if place.is_dir():
            return _folder(place, wanted)
        if not place.is_file():
            raise CorpusError(f"{place} does not exist: give a file or a folder of passages")
        if wanted == "datasets":
            raise CorpusError(f"{place} is a file: give the folder that save_to_disk wrote")
        return [(place, _module(files, wanted or _named(place) or _begun(place)))]
    except OSError as error:
        raise CorpusError(f"{place} cannot be read: {error.strerror}") from None


def layout(value: Mapping[str, Any], format: str) -> ModuleType:
    """The layout of a record.

    Raises:
        Malformed: it has none that is known.
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
    raise Malformed(
        f"{problem}: give passages in one of the layouts {', '.join(names)}, or name the field "
        "that holds the text with --text"
    )


def _folder(place: Path, wanted: str | None) -> list[tuple[Path, ModuleType]]:
    saved = _module(files, "datasets")
    if wanted == "datasets" or (wanted is None and saved.matches(place)):
        return [(place, saved)]
    if wanted is None and (beir := [place / name for name in BEIR if (place / name).is_file()]):
        return [(beir[0], _module(files, "json"))]
    paths = sorted(
        path
        for path in place.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(place).parts)
    )
    kinds = {path: kind for path in paths if (kind := _named(path))}
    chosen = {wanted} if wanted else set(PROSE) & set(kinds.values()) or set(kinds.values())
    if not kinds.keys() or not chosen & set(kinds.values()):
        ends = ", ".join(end for name in components.names(files) for end in _suffixes(name))
        raise CorpusError(f"{place} has no file that is named as one of {ends}")
    if len(chosen) > 1 and not chosen <= set(PROSE):
        raise CorpusError(
            f"{place} has files of several kinds ({', '.join(sorted(chosen))}): choose one with "
            "--format"
        )
    return [(path, _module(files, kind)) for path, kind in kinds.items() if kind in chosen]


def _named(path: Path) -> str | None:
    """The kind that a file's name tells."""
    name = path.name.lower().removesuffix(".gz")
    fitting = (kind for kind in components.names(files) if name.endswith(_suffixes(kind) or ("/",)))
    return next(fitting, None)


def _begun(path: Path) -> str:
    """The kind that a file's beginning tells; JSON where it is gzipped or empty."""
    with path.open("rb") as file:
        start = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    for begins, kind in _STARTS.items():
        if start.startswith(begins):
            return kind
    if not start or start.startswith(GZIP_MAGIC):
        return "json"
    names = ", ".join(components.names(files))
    raise CorpusError(f"{path} is of no kind that its name or its beginning tells: give --format "
                      f"with one of {names}")  # fmt: skip


def _suffixes(kind: str) -> tuple[str, ...]:
    found: tuple[str, ...] = _module(files, kind).SUFFIXES
    return found


def _module(package: ModuleType, name: str) -> ModuleType:
    return import_module(f"{package.__name__}.{name}")
