"""Real trainers, which `make test-trainers` installs into an environment of their own."""

from importlib.util import find_spec
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [name for name in ("trl", "verifiers") if find_spec(name) is None]
    if missing:
        reason = f"{' and '.join(missing)} not installed; `make test-trainers` does"
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))
