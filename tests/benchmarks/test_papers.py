"""The page of the papers' tables: its commands are real, and its figures exist."""

import shlex
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hopscope.api import parts
from hopscope.api.presets import Presets
from hopscope.api.spending import Spending
from hopscope.lab import tables, validity
from hopscope.lab.experiments.arms import arms
from hopscope.lab.running_suites import Suites
from hopscope.runtime import components
from tests.project.test_docs_commands import unknown

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks"
PAGE = ROOT / "docs" / "evidence" / "papers.md"


@pytest.fixture(scope="module")
def papers() -> Iterator[ModuleType]:
    """The script, which finds what it imports beside the other scripts."""
    known = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        yield import_module("experiments.papers")
    for name in set(sys.modules) - known:
        if name.partition(".")[0] == "experiments":
            del sys.modules[name]


def results(papers: ModuleType) -> list[Any]:
    return [one for own in papers.PAPERS.values() for one in own]


def lines(papers: ModuleType) -> list[str]:
    return [line for one in results(papers) for line in one.commands]


def values(line: str, option: str) -> list[str]:
    words = shlex.split(line)
    return [after for word, after in pairwise(words) if word == option]


def test_every_command_is_one_of_the_real_command_line(papers: ModuleType) -> None:
    assert {line: words for line in lines(papers) if (words := unknown(line))} == {}
    assert unknown("hopscope lab seper --dataset FILE") == ["--dataset"]


def test_every_suite_table_and_preset_exists(papers: ModuleType) -> None:
    named = [words for line in lines(papers) if (words := shlex.split(line))[1] == "lab"]
    suites = {words[2] for words in named} - {"equivalence"}
    assert suites <= set(components.names(validity))
    assert {"seper", "grogu", "item", "erag", "eor", "workflows_by_k"} <= suites
    asked = {name for line in lines(papers) for name in values(line, "-t")}
    assert asked <= set(components.names(tables))
    Presets.named(name for line in lines(papers) for name in values(line, "--preset"))


def test_every_workflow_can_be_built_with_its_options(papers: ModuleType) -> None:
    asked = {text for line in lines(papers) for text in values(line, "-w")}
    assert len(asked) > 10
    arms(sorted(asked), {}, presets=Presets(), corpus="hopland", k=None, spend=Spending())


def test_the_page_is_that_of_the_table(papers: ModuleType) -> None:
    """All but the figures, which a run makes."""
    kept = [line.rpartition(" | ")[0] for line in PAGE.read_text(encoding="utf-8").splitlines()]
    bare = [one._replace(here=None) for one in results(papers)]
    assert [
        row for one in bare if (row := papers.row(one, {}).rpartition(" | ")[0]) not in kept
    ] == []


def test_a_result_has_a_figure_or_a_reason(papers: ModuleType) -> None:
    told = [(one.place, (one.here, one.unmeasured, one.elsewhere)) for one in results(papers)]
    assert [place for place, ways in told if sum(map(bool, ways)) != 1] == []


def test_a_suite_gives_the_figures_that_the_table_names(papers: ModuleType) -> None:
    """The quickest suite at its smallest; without any figure the page could not be made."""
    running = Suites(["grogu"], parts.TINY, None, seed=0, limit=1)
    found = {outcome.name: outcome.figures for outcome in running.run()}
    shown = [one for one in results(papers) if one.here and one.here.suite in found]
    assert len(shown) == 3
    wins = papers.here(shown[0], found)
    assert wins.startswith(("0.0 [", "100.0 ["))
    assert wins.endswith("(n 1)")
    [entailments] = [one.here for one in results(papers) if one.place == "T8, Fig. 7"]
    running = Suites(["seper"], parts.TINY, None, seed=0, limit=1, entailments=papers.COMPARED)
    found |= {outcome.name: outcome.figures for outcome in running.run()}
    assert papers.figure(found, entailments).n == 3
    assert all(
        papers.figure(found, o.here) for o in results(papers) if o.here and o.here.suite == "seper"
    )
    wrong = shown[0]._replace(here=shown[0].here._replace(name="grogu_wins/nothing"))
    with pytest.raises(KeyError):
        papers.row(wrong, found)
