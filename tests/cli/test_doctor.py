"""`hopscope doctor` knows what can be installed."""

import tomllib
from pathlib import Path

from hopscope.cli import doctor

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_every_extra_is_looked_for() -> None:
    """Four came after the list was made, and nobody was told how to get them."""
    extras = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    assert doctor.EXTRAS.keys() == extras.keys() - {"dev", "faiss-gpu"}  # faiss is one or the other
