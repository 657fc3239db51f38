"""The helpers that tests share."""

import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parents[1]


def test_each_file_of_the_tests_is_one_module() -> None:
    """Loaded under two names, `fakes` and `tests.fakes`, a class is two types and `isinstance` and
    monkeypatching miss."""
    assert not [path for path in sys.path if HERE in (Path(path), *Path(path).parents)]
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    ours = Counter(file for file in files if file and HERE in Path(file).parents)
    assert [file for file, times in ours.items() if times > 1] == []
