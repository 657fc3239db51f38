"""The options of suites: whose they are, which precede, and what is refused."""

import pytest

from hopscope.api.presets import Presets
from hopscope.lab.suites import worlds
from hopscope.lab.suites.settings import Owners
from hopscope.lab.validity import eor, grogu, item, seper, workflows_by_k
from hopscope.runtime.errors import UsageError
from tests.fakes import ScriptedReader


def test_suites_take_the_options_of_the_parts_they_use() -> None:
    found = Owners([seper, item, workflows_by_k, grogu])
    assert found.meters == ["seper", "grogu"]
    assert found.workflows[:5] == ["vanilla", "uj_expa", "uj_impa", "k_sampling", "item"]
    assert "ircot" in found.workflows


@pytest.mark.parametrize(
    ("preset", "suites"),
    [
        ("seper-paper", [seper]),
        ("eor-authors", [eor]),
        ("item-paper", [item]),
        ("grogu-paper", [grogu]),
        ("flare-authors", [workflows_by_k]),
        ("ircot-authors", [workflows_by_k]),
    ],
)
def test_every_shipped_preset_sets_options_of_a_suite(preset: str, suites: list[object]) -> None:
    owners = Owners(suites)  # type: ignore[arg-type]
    assert owners.told(owners.chosen([preset], []))


def test_own_options_precede_presets_and_reach_the_suite() -> None:
    owners = Owners([item, grogu])
    own = ["item.u0=sentinel", "judgment=pointwise", "grogu.top=0.2"]
    chosen = owners.chosen(["item-paper"], own)
    inputs = worlds.make(ScriptedReader(), seed=1, limit=1, presets=chosen)
    of_item = inputs.workflow("item")
    assert (of_item["u0"], of_item["judgment"], of_item["k"]) == ("sentinel", "pointwise", 5)
    assert inputs.workflow("vanilla")["judgment"] == "pointwise"
    assert inputs.workflow("k_sampling")["k"] == 5
    assert inputs.meter("grogu") == {"top": 0.2}
    told = owners.told(chosen)
    assert "item.u0=sentinel" in told
    assert "uj_impa.judgment=pointwise" in told
    assert owners.told(Presets()) == ""


def test_a_suites_own_default_comes_before_the_workflows_and_after_presets() -> None:
    plain = worlds.make(ScriptedReader(), seed=1, limit=1)
    assert plain.workflow("eor", pool="PK,ReFree")["pool"] == "PK,ReFree"
    paper = Owners([eor]).chosen(["eor-authors"], [])
    inputs = worlds.make(ScriptedReader(), seed=1, limit=1, presets=paper)
    assert inputs.workflow("eor", pool="PK,ReFree")["pool"].startswith("Wiki@10,")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("judgment", "write OWNER.KEY=VALUE"),
        ("flare.theta=1", "nothing in these suites has that option; they take those of vanilla"),
        ("theta=1", "nothing in these suites has that option"),
        ("item.judgement=pointwise", r"item: unknown option 'judgement'.* mean judgment"),
        ("item.judgment=alone", "item: option judgment=alone"),
        ("item.m=2", "these suites set m themselves; leave it out"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_runs(option: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Owners([item]).chosen([], [option])


def test_what_a_suite_varies_is_not_told_of_a_preset() -> None:
    """ITEM's preset has m = 3; the table has every m, and k of `workflows_by_k` is the table's."""
    owners = Owners([item, workflows_by_k, grogu])
    told = owners.told(owners.chosen(["item-paper", "flare-authors", "grogu-paper"], []))
    assert "item.k=5" in told
    assert not {"item.m", "flare.k", "grogu.score"} & {
        each.partition("=")[0] for each in told.split(", ")
    }


def test_a_preset_of_no_suite_that_runs_is_refused() -> None:
    with pytest.raises(UsageError, match="preset flare-authors sets options of flare"):
        Owners([item]).chosen(["flare-authors"], [])
