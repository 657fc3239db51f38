"""Index folders: written completely or not at all, with a manifest of their files.

Invariant: a folder that has a manifest is complete. An index is written into a hidden folder beside
its place (`.NAME.building-*`), every file reaches the disk, the manifest is written last, and only
then is the folder renamed. A killed build leaves at most the hidden folder, which may be deleted,
or which a resumable build continues. Replacing an index takes two renames: after a kill between
them, the old index is in `.NAME.old-*`.
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, ValidationError

from hopscope.runtime.errors import IndexMismatchError, RetrieverError, UsageError
from hopscope.runtime.types import Record
from hopscope.runtime.validation import first

MANIFEST = "manifest.json"
FORMAT: Literal[1] = 1


class File(Record):
    """One file of an index."""

    size: int
    sha256: str


class Manifest(Record):
    """The description of an index."""

    format: Literal[1] = FORMAT
    kind: str
    """The retriever that reads it."""
    name: str
    """The name of the corpus."""
    fingerprint: str
    """SHA-256 over ids, titles and texts of the passages in order."""
    counts: dict[str, int]
    settings: dict[str, JsonValue]
    """All settings that the ranking depends on, besides the passages."""
    hopscope: str
    """The version of Hopscope that built it."""
    files: dict[str, File] = Field(default={})


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an index, after a check of the sizes of its files.

    Raises:
        UsageError: the folder is no index.
        IndexMismatchError: it is not the one that its manifest describes.
    """
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise UsageError(
            f"{folder} is no index: it has no {MANIFEST}; make one with `hopscope index build`"
        ) from None
    except OSError as error:
        raise IndexMismatchError(f"{folder / MANIFEST} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        problem = first(error, whole="the whole")
        raise IndexMismatchError(
            f"{folder / MANIFEST} is no manifest of format {FORMAT} ({problem}); "
            "build the index again with this version"
        ) from None
    for name, file in manifest.files.items():
        path = folder / name
        size = path.stat().st_size if path.is_file() else None
        if size != file.size:
            found = "is missing" if size is None else f"has {size} bytes"
            raise IndexMismatchError(
                f"{path} {found}, the manifest says {file.size} bytes; build the index again"
            )
    return manifest


def verify(folder: Path) -> Manifest:
    """Compare every byte of an index with its manifest.

    Raises:
        IndexMismatchError: as `read_manifest`, or a file's content has changed.
    """
    manifest = read_manifest(folder)
    for name, file in manifest.files.items():
        found = _sha256(folder / name)
        if found != file.sha256:
            raise IndexMismatchError(
                f"{folder / name} has SHA-256 {found}, the manifest says {file.sha256}; "
                "build the index again"
            )
    return manifest


def check_settings(folder: Path | str, manifest: Manifest, wanted: dict[str, JsonValue]) -> None:
    """Refuse an index that was built with other settings than this version uses.

    Raises:
        IndexMismatchError: the message names the setting with both values.
    """
    for key in sorted(wanted.keys() | manifest.settings.keys()):
        here, there = wanted.get(key), manifest.settings.get(key)
        if here != there or there is None:
            raise IndexMismatchError(
                f"{folder} was built with {key} = {there!r}, this version has {here!r}; "
                "build the index again"
            )


@contextmanager
def building(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """A folder to write an index into; it becomes `target` when the block succeeds.

    Raises:
        UsageError: `target` exists, before or after the block, and is no index or must not be
            replaced.
        RetrieverError: writing failed.
    """
    target = target.absolute()
    _check_place(target, overwrite)
    new = _beside(target, "building")
    try:
        new.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from None
    try:
        with _replacing(target, new, overwrite):
            yield new
    finally:
        shutil.rmtree(new, ignore_errors=True)


@contextmanager
def _replacing(target: Path, new: Path, overwrite: bool) -> Iterator[None]:
    """Put the new folder in the place of the target at the end of the block.

    Raises:
        RetrieverError: writing failed.
    """
    try:
        yield
        _sync(new)
        _put(new, target, overwrite)
    except OSError as error:
        raise RetrieverError(f"writing {target} failed: {error}") from error


@contextmanager
def resuming(target: Path, *, overwrite: bool, key: str, kept: str) -> Iterator[Path]:
    """As `building`, but the folder of an interrupted build stays for the next build with the same
    `key`, if it holds the file `kept`.

    Raises:
        UsageError: as `building`, or another process runs the same build.
        RetrieverError: as `building`.
    """
    import fcntl  # Windows has none; it can still open indexes

    target = target.absolute()
    _check_place(target, overwrite)
    new = target.parent / f".{target.name}.building-{key}"
    try:
        new.mkdir(parents=True, exist_ok=True)
        handle = os.open(new, os.O_RDONLY)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from None
    try:
        try:
            # The system releases the lock when the process ends, however it ends.
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another process is building {target}: wait for it") from None
        try:
            with _replacing(target, new, overwrite):
                yield new
        finally:
            if not (new / kept).exists():
                shutil.rmtree(new, ignore_errors=True)
    finally:
        os.close(handle)


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Write the manifest with the files of the folder."""
    paths = sorted(path for path in folder.iterdir() if path.name != MANIFEST)
    files = {path.name: File(size=path.stat().st_size, sha256=_sha256(path)) for path in paths}
    for path in paths:
        _sync(path)
    sealed = manifest.model_copy(update={"files": files})
    (folder / MANIFEST).write_text(sealed.model_dump_json(indent=2) + "\n", encoding="utf-8")
    _sync(folder / MANIFEST)
    return sealed


def _check_place(target: Path, overwrite: bool) -> None:
    if not os.path.lexists(target):
        return
    ours = target.is_dir() and not target.is_symlink() and (target / MANIFEST).is_file()
    if not ours and not (target.is_dir() and not target.is_symlink() and not any(target.iterdir())):
        raise UsageError(f"{target} exists and is no index: give another place, or move it away")
    if ours and not overwrite:
        raise UsageError(f"{target} is an index already: give another place, or --overwrite")


def _put(new: Path, target: Path, overwrite: bool) -> None:
    """Rename `new` to `target`. A target that another process has made meanwhile stays, unless
    `overwrite`."""
    if overwrite:
        _replace(new, target)
        return
    try:
        if target.is_dir():
            target.rmdir()  # removes an empty folder only
        new.rename(target)  # also replaces an empty folder only
    except OSError as error:
        if os.path.lexists(target):
            _check_place(target, overwrite)
        raise error
    _sync(target.parent)


def _replace(new: Path, target: Path) -> None:
    old = _beside(target, "old")
    replacing = target.exists()
    if replacing:
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if replacing:
            old.rename(target)
        raise
    _sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def _beside(target: Path, what: str) -> Path:
    return target.parent / f".{target.name}.{what}-{secrets.token_hex(4)}"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
