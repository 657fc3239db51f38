"""Where a model lies and what it is called, found out before anything heavy is imported.

Invariant: a `Checkpoint` is a local folder that holds a configuration, a tokenizer and complete
safetensors weights. Weights in pickle formats are refused, because unpickling runs code.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hopscope.runtime.errors import UsageError

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack", "*.gguf")
WANTED = ("*.json", "*.safetensors", "*.jinja", "*.txt", "*.model")
UNWANTED = ("*/*", "consolidated*")
"""Repositories repeat their weights in other formats, in subfolders or as consolidated files."""
WHOLE = 64 << 20
"""Files up to this size enter the fingerprint whole, larger ones by samples."""
SAMPLES = 256
BLOCK = 4096


class Checkpoint(NamedTuple):
    """A model on disk."""

    folder: Path
    name: str
    """Model and revision: the hub's commit, or a fingerprint of a local folder's content."""


def locate(model: str, revision: str | None = None) -> Checkpoint:
    """The checkpoint meant by a folder or hub id; downloads it only when the cache lacks it.

    Raises:
        UsageError: there is no such model, or it is not in a form that can be loaded.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise UsageError(f"{model} is a local folder; a revision is for models on the hub")
        if problem := defect(folder):
            raise UsageError(f"model folder {model}: {problem}")
        return Checkpoint(folder, f"{folder.resolve().name}@{fingerprint(folder)}")
    if folder.exists():
        raise UsageError(f"{model} is a file; give the folder that holds the model")
    folder = _from_hub(model, revision)
    if problem := defect(folder):
        raise UsageError(
            f"model {model} as downloaded: {problem}; if the download was cut short, repeat it: "
            f"hf download {model}"
        )
    return Checkpoint(folder, f"{model}@{folder.name[:12]}")


def defect(folder: Path) -> str | None:
    """What keeps a folder from being loaded, or None."""
    if not (folder / "config.json").is_file():
        return "it has no config.json; give a folder saved with save_pretrained"
    try:
        json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError:
        return "its config.json is damaged"
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, AttributeError):
            return f"{index.name} is damaged"
        if missing := sorted(name for name in shards if not (folder / name).is_file()):
            return f"{len(missing)} of {len(shards)} weight files are missing, first {missing[0]}"
    elif not (folder / "model.safetensors").is_file():
        if pickles := sorted(path.name for kind in PICKLES for path in folder.glob(kind)):
            return (
                f"its weights are in {pickles[0]}, and only safetensors are loaded; convert them: "
                "load the model with transformers and call save_pretrained"
            )
        return "it has no weights (model.safetensors)"
    if not any((folder / name).is_file() for name in TOKENIZERS):
        return f"it has no tokenizer ({', '.join(TOKENIZERS[:3])}, …)"
    return None


def fingerprint(folder: Path) -> str:
    """Twelve hex digits that change when weights, tokenizer or configuration do.

    Files over 64 MiB are sampled at 256 places: a training run moves nearly
    every weight, so what escapes is an edit by hand to a few numbers of a large model.
    """
    sha = hashlib.sha256()
    paths = {path for kind in WANTED for path in folder.glob(kind) if path.is_file()}
    for path in sorted(paths):
        size = path.stat().st_size
        sha.update(f"{path.name}\0{size}\0".encode())
        for block in _blocks(path, size):
            sha.update(block)
    return sha.hexdigest()[:12]


def _blocks(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        if size <= WHOLE:
            yield file.read()
            return
        for sample in range(SAMPLES):
            file.seek((size - BLOCK) * sample // (SAMPLES - 1))
            yield file.read(BLOCK)


def _from_hub(model: str, revision: str | None) -> Path:
    """The snapshot folder of a hub model: from the cache if it is complete there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    def snapshot(*, cached: bool) -> Path:
        return Path(
            snapshot_download(
                model,
                revision=revision,
                local_files_only=cached,
                allow_patterns=list(WANTED),
                ignore_patterns=list(UNWANTED),
            )
        )

    try:
        folder = snapshot(cached=True)
        if defect(folder) is None:
            return folder
    except LocalEntryNotFoundError:
        pass
    except HFValidationError:
        raise UsageError(f"no model folder {model}") from None
    try:
        return snapshot(cached=False)
    except GatedRepoError:
        why = "the hub wants you to accept its terms and to log in (hf auth login)"
    except RepositoryNotFoundError:
        why = "the hub has no such model, or it is private (hf auth login)"
    except RevisionNotFoundError:
        why = f"it has no revision {revision}"
    except HfHubHTTPError as error:
        why = f"the hub answered with status {error.response.status_code}"
    except OSError:
        if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
            why = "HF_HUB_OFFLINE forbids the download; unset it or fetch the model beforehand"
        else:
            why = "the hub cannot be reached"
        why += f" (hf download {model})"
    raise UsageError(f"no folder {model}, none in the cache, and {why}")
