"""Locates a model and names it, before anything heavy is imported.

Invariant: a `Checkpoint` is a local folder that holds a configuration, a tokenizer and complete
safetensors weights. Weights in pickle formats are refused, because unpickling runs code.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hopscope.runtime.errors import UsageError
from hopscope.runtime.models.installed import require
from hopscope.runtime.places import expanded
from hopscope.runtime.texts.literals import json_value

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack", "*.gguf")
WANTED = ("*.json", "*.safetensors", "*.jinja", "*.txt", "*.model")
UNWANTED = ("*/*", "consolidated*")
"""Repositories repeat their weights in other formats, in subfolders or as consolidated files."""
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
WHOLE_MODEL = ("model.safetensors", "model.safetensors.index.json")
_BASE = "name the base model: hf:BASE,adapter=ADAPTER"
GGUF = (
    "llama.cpp's server reads GGUF files: start llama-server -m FILE, then take "
    "--reader openai:http://127.0.0.1:8080/v1#MODEL"
)
WHOLE = 64 << 20
"""Files up to this size are hashed whole for the fingerprint, larger ones by samples."""
SAMPLES = 256
BLOCK = 4096


class Checkpoint(NamedTuple):
    """A model on disk."""

    folder: Path
    name: str
    """Model and revision: the hub's commit, or a fingerprint of a local folder's content."""
    adapter: Path | None = None
    """A folder with a LoRA adapter to merge into it."""

    @property
    def vocabulary(self) -> Path:
        """The folder that holds the tokenizer: an adapter may bring its own."""
        if self.adapter and any((self.adapter / name).is_file() for name in TOKENIZERS):
            return self.adapter
        return self.folder


def locate(model: str, revision: str | None = None, *, adapters: bool = False) -> Checkpoint:
    """The checkpoint of a folder or hub id; it is downloaded only if the cache lacks it.

    Args:
        model: a folder or hub id.
        revision: the hub's branch, tag or commit.
        adapters: whether to accept a LoRA adapter; its base model is located too.

    Raises:
        UsageError: the model is missing, or its form cannot be loaded.
        MissingExtraError: the libraries that load it are not installed.
    """
    folder, name = _named(model, revision)
    if adapters and is_adapter(folder):
        return _adapted(folder, name)
    if problem := defect(folder):
        if expanded(model).is_dir():
            raise UsageError(f"model folder {model}: {problem}")
        raise UsageError(
            f"model {model} as downloaded: {problem}; if the download was cut short, repeat it: "
            f"hf download {model}"
        )
    return Checkpoint(folder, name)


def locate_adapted(model: str, adapter: str, revision: str | None = None) -> Checkpoint:
    """The checkpoint of a base model with a LoRA adapter, whatever base the adapter names.

    Args:
        model: the base model, a folder or hub id.
        adapter: likewise.
        revision: the base model's branch, tag or commit on the hub.

    Raises:
        UsageError, MissingExtraError: as `locate`.
    """
    folder, name = _named(adapter)
    if not (folder / ADAPTER).is_file():
        raise UsageError(
            f"adapter {adapter}: it has no {ADAPTER}; give a folder that peft's save_pretrained "
            "wrote"
        )
    _checked(folder, name)
    base = locate(model, revision)
    return Checkpoint(base.folder, f"{name}+{base.name}", folder)


def _named(model: str, revision: str | None = None) -> tuple[Path, str]:
    """The folder of a model or adapter, and its name.

    Raises:
        UsageError: there is none.
        MissingExtraError: the libraries that load it are not installed.
    """
    if not model.strip():
        raise UsageError("no model is named; give a folder or a hub id")
    require(f"the model {model}")
    folder = expanded(model)
    if folder.is_dir():
        if revision is not None:
            raise UsageError(f"{model} is a local folder; a revision is for models on the hub")
        return folder, f"{folder.resolve().name}@{fingerprint(folder)}"
    if folder.exists():
        what = GGUF if folder.suffix == ".gguf" else "give the folder that holds the model"
        raise UsageError(f"{model} is a file; {what}")
    folder = _from_hub(model, revision)
    return folder, f"{model}@{folder.name[:12]}"


def is_adapter(folder: Path) -> bool:
    """Whether the folder holds an adapter by peft, without a model."""
    return (folder / ADAPTER).is_file() and not any(
        (folder / name).is_file() for name in WHOLE_MODEL
    )


def _adapted(folder: Path, name: str) -> Checkpoint:
    """An adapter, together with the base model that it names."""
    base, revision = _checked(folder, name)
    if not isinstance(base, str) or not base.strip():
        raise UsageError(f"adapter {name}: its {ADAPTER} names no base model; {_BASE}")
    local = expanded(base).is_dir()
    try:
        checkpoint = locate(base, None if local or not isinstance(revision, str) else revision)
    except UsageError as error:
        raise UsageError(
            f"adapter {name}: its base model is not at hand: {error}; {_BASE}"
        ) from error
    return Checkpoint(checkpoint.folder, f"{name}+{checkpoint.name}", folder)


def _checked(folder: Path, name: str) -> tuple[Any, Any]:
    """The base model and its revision as the adapter's configuration names them.

    Raises:
        UsageError: it is not LoRA's, or its weights are not safetensors.
    """
    try:
        given = _object(folder / ADAPTER)
    except ValueError:
        raise UsageError(
            f"adapter {name}: its {ADAPTER} is damaged; save the adapter again with save_pretrained"
        ) from None
    kind = given.get("peft_type")
    if kind != "LORA":
        raise UsageError(
            f"adapter {name} is of the kind {kind}; only LORA can be merged and read; merge it "
            "with peft (merge_and_unload) and give the folder of the merged model"
        )
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise UsageError(
            f"adapter {name}: it has no {ADAPTER_WEIGHTS}, and only safetensors are loaded; copy "
            "the file from where the adapter was trained, or save the adapter again with "
            "save_pretrained"
        )
    return given.get("base_model_name_or_path"), given.get("revision")


def _object(file: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        ValueError: the file holds none.
    """
    read = json_value(file.read_text(encoding="utf-8"))
    if not isinstance(read, dict):
        raise ValueError("no object")
    return read


def defect(folder: Path) -> str | None:
    """The reason why a folder cannot be loaded, or None."""
    if is_adapter(folder):
        return (
            "it is an adapter without its base model, which only the reader hf merges "
            "(hf:BASE,adapter=ADAPTER); merge it with peft (merge_and_unload) and save_pretrained"
        )
    if not (folder / "config.json").is_file():
        if next(folder.glob("*.gguf"), None):
            return GGUF
        return f"it has no config.json; give a folder saved with save_pretrained ({GGUF})"
    try:
        _object(folder / "config.json")
    except ValueError:
        return "its config.json is damaged; copy the model again"
    if (folder / ADAPTER).is_file():
        return (
            f"it holds a model and an adapter; take {ADAPTER} away to read the model, or the model "
            "to read the adapter"
        )
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            shards = set(map(str, _object(index)["weight_map"].values()))
        except (ValueError, KeyError, AttributeError):
            return f"{index.name} is damaged; copy the model again"
        if missing := sorted(name for name in shards if not (folder / name).is_file()):
            return (
                f"{len(missing)} of {len(shards)} weight files are missing, first {missing[0]}; "
                "copy them into the folder"
            )
    elif not (folder / "model.safetensors").is_file():
        if pickles := sorted(path.name for kind in PICKLES for path in folder.glob(kind)):
            return (
                f"its weights are in {pickles[0]}, and only safetensors are loaded; convert them: "
                "load the model with transformers and call save_pretrained"
            )
        return "it has no weights (model.safetensors); copy them into the folder"
    if not any((folder / name).is_file() for name in TOKENIZERS):
        return (
            f"it has no tokenizer ({', '.join(TOKENIZERS[:3])}, …); save one there with "
            "save_pretrained"
        )
    return None


def fingerprint(folder: Path) -> str:
    """Twelve hex digits that change with weights, tokenizer or configuration.

    Files over 64 MiB are sampled at 256 places: a training run changes nearly
    every weight, so only an edit by hand of a few numbers of a large model escapes.
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
    """The snapshot folder of a hub model, from the cache if that is complete."""
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
        adapter = is_adapter(folder) and (folder / ADAPTER_WEIGHTS).is_file()
        if adapter or defect(folder) is None:
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
