"""Real inspect_ai, ragas and FlashRAG, which `make test-inspect` installs into an environment of
their own."""

from importlib.util import find_spec
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [name for name in ("inspect_ai", "ragas", "flashrag") if find_spec(name) is None]
    if missing:
        reason = f"{' and '.join(missing)} not installed; `make test-inspect` does"
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small experiment `towns` in all three forms, a folder for each."""
    from hopscope.cli.main import main
    from tests.cli.views.screens_example import NAME, fill

    folder = tmp_path_factory.mktemp("exported")
    database = folder / "runs.db"
    fill(database)
    for form in ("inspect", "ragas", "flashrag"):
        with pytest.raises(SystemExit) as ended:
            main(["export", form, NAME, "--out", str(folder / form), "--db", str(database)])
        assert not ended.value.code
    return folder
