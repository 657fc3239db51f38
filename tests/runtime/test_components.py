import ast
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import ByteSize

from hopscope import workflows
from hopscope.runtime import components
from hopscope.runtime.errors import UsageError
from hopscope.runtime.specs import Spec
from hopscope.runtime.thinking.marks import Thinking
from hopscope.tracing import credit, meters, policies


def build(
    *, k: int = 4, cap: int | None = None, reader: bool = True, alpha: float = 0.05
) -> None: ...


def test_meters_that_are_variants_are_among_the_choices() -> None:
    """`seper_hard` is measured by default, and was not said to be a choice."""
    with pytest.raises(UsageError, match=r"gold_logprob, gold_probability, .* seper, seper_hard"):
        components.load(meters, "nothing")
    with pytest.raises(UsageError, match="did you mean seper_hard"):
        components.load(meters, "seper_hrad")


def test_a_component_is_named_after_its_file_and_helpers_are_not_listed() -> None:
    found = components.names(workflows)
    assert {"closed_book", "naive", "ircot"} <= set(found)
    assert not any(name.startswith("_") for name in found)


def test_threads_parse_sources_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `--threads 4` the first questions failed: AST constructor recursion depth mismatch."""
    inside: list[str] = []
    most: list[int] = []
    parse = ast.parse

    def slow(source: str) -> ast.Module:
        inside.append(source)
        time.sleep(0.002)
        most.append(len(inside))
        inside.remove(source)
        return parse(source)

    monkeypatch.setattr(components.ast, "parse", slow)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(components.statements, [f"x = {i}" for i in range(8)]))
    assert [len(each) for each in found] == [1] * 8
    assert most == [1] * 8


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
    with pytest.raises(UsageError, match=r"option k=many: give a whole number"):
        components.parse_options(build, {"k": "many"})


Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution that offers workflows, by entry points and the modules they name."""

    def install(distribution: str, points: dict[str, str], **modules: str) -> None:
        site = tmp_path / distribution
        info = site / f"{distribution}-1.5.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n"
        )
        lines = ["[hopscope.workflows]", *(f"{name} = {value}" for name, value in points.items())]
        (info / "entry_points.txt").write_text("\n".join(lines))
        for name, source in modules.items():
            (site / f"{name}.py").write_text(source)
            installed.append(name)
        monkeypatch.syspath_prepend(site)

    installed: list[str] = []
    yield install
    for name in installed:
        sys.modules.pop(name, None)


BUILD = "def build(*, k: int = 4): ..."


def test_a_component_of_another_distribution_is_found_and_loaded(install: Install) -> None:
    install("elsewhere", {"outside": "outside_module"}, outside_module=BUILD)
    assert "outside" in components.names(workflows)
    assert "outside" not in components.own(workflows)
    assert "outside" not in components.names(credit), "it is no rule"
    assert components.ComponentEntry("outside", "elsewhere 1.5") in components.found(workflows)
    assert list(components.options(components.load(workflows, "outside").build)) == ["k"]


def test_listing_and_loading_others_imports_no_outside_module(install: Install) -> None:
    install("elsewhere", {"outside": "outside_module"}, outside_module="raise SystemExit('no')")
    assert "outside" in components.names(workflows)
    components.load(workflows, "naive")
    assert "outside_module" not in sys.modules


@pytest.mark.parametrize("source", ["import nowhere_to_be_found", "raise SystemExit(3)", "1 +"])
def test_what_cannot_be_imported_is_told_with_its_distribution(
    install: Install, source: str
) -> None:
    install("elsewhere", {"outside": "outside_module"}, outside_module=source)
    with pytest.raises(
        UsageError,
        match=r"outside among workflows comes from elsewhere 1.5 and cannot be imported "
        r"\(\w+: .*\): upgrade or uninstall elsewhere",
    ):
        components.load(workflows, "outside")


@pytest.mark.parametrize("value", ["outside_module", "outside_module:build"])
def test_an_entry_point_must_name_a_module_with_build(install: Install, value: str) -> None:
    install("elsewhere", {"outside": value}, outside_module="def build2(): ...\nbuild = 3")
    with pytest.raises(UsageError, match=r"elsewhere 1.5, whose entry point .* is no module with"):
        components.load(workflows, "outside")


def test_a_component_of_ours_is_not_replaced(install: Install) -> None:
    install("elsewhere", {"naive": "outside_module"}, outside_module=BUILD)
    assert components.load(workflows, "naive").__name__ == "hopscope.workflows.naive"
    assert components.names(workflows) == components.own(workflows)
    ours, theirs = (each for each in components.found(workflows) if each.name == "naive")
    assert (ours.origin, ours.problem) == (None, None)
    assert theirs.origin == "elsewhere 1.5"
    assert theirs.problem is not None
    assert "hopscope has one of that name" in theirs.problem


def test_a_name_that_two_distributions_offer_is_refused(install: Install) -> None:
    install("elsewhere", {"outside": "outside_module"}, outside_module=BUILD)
    install("farther", {"outside": "farther_module"}, farther_module=BUILD)
    with pytest.raises(UsageError, match=r"offered by elsewhere 1.5 and by farther 1.5: uninstall"):
        components.load(workflows, "outside")
    assert "outside" not in components.names(workflows)


def test_a_name_that_no_command_could_give_is_refused(install: Install) -> None:
    install("elsewhere", {"out-side": "outside_module"}, outside_module=BUILD)
    with pytest.raises(UsageError, match="names are letters, digits and underscores"):
        components.load(workflows, "out-side")


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where more workflows are looked for."""
    monkeypatch.setattr(workflows, "__path__", [*workflows.__path__, str(tmp_path)])
    return tmp_path


@pytest.mark.parametrize(
    ("name", "source", "listed"),
    [
        ("in_folder", BUILD, True),
        ("in_folder", "from os.path import join as build", True),
        ("in_folder", "import os.path\nbuild = os.path.join", True),
        ("in_folder", "raise RuntimeError\n" + BUILD, True),  # known without being run
        ("in_folder", '"""def build(): ..."""\ndef rebuild(): ...', False),
        ("in_folder", "", False),
        ("_in_folder", BUILD, False),
    ],
)
def test_a_folder_is_a_component_if_its_init_defines_build(
    folders: Path, name: str, source: str, listed: bool
) -> None:
    (folders / name).mkdir()
    (folders / name / "__init__.py").write_text(source)
    assert (name in components.own(workflows)) is listed
    assert f"hopscope.workflows.{name}" not in sys.modules


def test_a_component_in_a_folder_is_loaded(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folders / "in_folder").mkdir()
    (folders / "in_folder" / "__init__.py").write_text(BUILD)
    assert list(components.options(components.load(workflows, "in_folder").build)) == ["k"]
    monkeypatch.delitem(sys.modules, "hopscope.workflows.in_folder")


MEMORY = ByteSize(0)


def chosen(
    *,
    how: Literal["fast", "good"] = "good",
    thinking: Thinking = "auto",
    memory: components.Bytes = MEMORY,
    share: components.Share = 0.5,
    count: components.Count = 1,
    exact: bool = False,
) -> None: ...


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("how", "slow", "choose 'fast' or 'good'"),
        ("thinking", "never", "choose 'auto', 'on' or 'off', or give a whole number"),
        ("thinking", "0", "choose 'auto', 'on' or 'off', or give 1 or more"),
        ("memory", "much", "give a number of bytes, 0 or more, such as 512MB or 2GB"),
        ("share", "1.5", "give 1.0 or less"),
        ("share", "nan", "give a finite number"),
        ("share", "half", "give a number"),
        ("count", "0", "give 1 or more"),
        ("count", "1.5", "give a whole number"),
        ("exact", "maybe", "give true or false"),
    ],
)
def test_a_refused_value_comes_with_what_to_give(key: str, value: str, problem: str) -> None:
    """It showed the validator's own "Value error, " and "Input should be"."""
    with pytest.raises(UsageError) as refused:
        components.parse_options(chosen, {key: value})
    assert str(refused.value) == f"option {key}={value}: {problem}"


def test_what_stands_behind_the_name_is_for_one_option() -> None:
    def text(spec: str, **settings: Any) -> dict[str, Any]:
        return components.named(policies, Spec.parse(spec), **settings).keywords

    assert text("random") == {"p": 0.5}
    assert text("random:0.25") == text("random,p=0.25") == {"p": 0.25}
    with pytest.raises(UsageError, match=r"random:0.25,p=0.5: p is given twice"):
        text("random:0.25,p=0.5")
    with pytest.raises(UsageError, match="never:x: never takes nothing after its name; leave out"):
        text("never:x")
    with pytest.raises(UsageError, match="takes nothing after its name"):
        text("random:0.25", argument="model")
    with pytest.raises(UsageError, match="value needs file: give value:FILE"):
        text("value", provided={"workflow": "w", "reader_name": "r"})
    with pytest.raises(UsageError, match="value:f needs workflow: give value,workflow=VALUE"):
        text("value:f")
