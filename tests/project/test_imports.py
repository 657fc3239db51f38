"""The rule by which tests are chosen that compute with models."""

from pathlib import Path

import pytest

from tests.imports import ROOT, computes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch", True),
        ("from transformers import AutoTokenizer", True),
        ("def test_x():\n    import torch", True),
        ("from hopscope.runtime.readers import hf", True),
        ("from hopscope.runtime import readers", True),
        ("from tests import models", True),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch", False),
        ("from hopscope.runtime.types import Passage", False),
        ("from tests.fakes import ScriptedReader", False),
    ],
)
def test_a_file_computes_if_torch_can_be_reached_from_it(
    tmp_path: Path, text: str, expected: bool
) -> None:
    file = tmp_path / "test_x.py"
    file.write_text(text)
    assert computes(file) is expected


def test_those_that_compute_are_some_of_all() -> None:
    files = list((ROOT / "tests" / "runtime").rglob("test_*.py"))
    chosen = [file.name for file in files if computes(file)]
    assert {"test_hf_reader.py", "test_zoo.py", "test_encoders.py"} <= set(chosen)
    assert len(chosen) < 0.7 * len(files)
