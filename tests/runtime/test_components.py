import pytest

from hopscope import workflows
from hopscope.runtime import components
from hopscope.runtime.errors import UsageError


def build(
    *, k: int = 4, cap: int | None = None, reader: bool = True, alpha: float = 0.05
) -> None: ...


def test_a_component_is_named_after_its_file_and_helpers_are_not_listed() -> None:
    found = components.names(workflows)
    assert {"closed_book", "naive", "ircot"} <= set(found)
    assert not any(name.startswith("_") for name in found)


def test_an_unknown_component_lists_the_choices() -> None:
    with pytest.raises(UsageError, match=r"no 'irrcot' among workflows: choose from .*ircot"):
        components.load(workflows, "irrcot")


def test_options_are_read_by_type_and_default_otherwise() -> None:
    parsed = components.parse_options(build, {"k": "7", "reader": "false", "cap": "3"})
    assert parsed == {"k": 7, "cap": 3, "reader": False, "alpha": 0.05}


def test_an_unknown_option_lists_the_options() -> None:
    with pytest.raises(UsageError, match=r"unknown option 'kk': the options are k, cap, reader"):
        components.parse_options(build, {"kk": "7"})


def test_a_value_of_the_wrong_type_says_which_option() -> None:
    with pytest.raises(UsageError, match=r"option k=many: .*integer"):
        components.parse_options(build, {"k": "many"})
