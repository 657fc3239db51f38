"""How meters are shown: what each declares, found by name without importing it."""

from importlib import import_module
from pathlib import Path

import pytest

from hopscope.runtime import code_files, components
from hopscope.runtime.ports import Display
from hopscope.tracing import meters
from hopscope.tracing.reports.displays import (
    display,
    leading,
    metric_heading,
    rule_heading,
    shown,
)


@pytest.mark.parametrize("meter", components.own(meters))
def test_what_is_read_of_a_source_is_what_the_module_declares(meter: str) -> None:
    assert display(meter) == import_module(f"{meters.__name__}.{meter}").DISPLAY


def test_a_meter_that_is_not_installed_is_shown_by_its_name() -> None:
    assert display("gone") == Display("gone")
    assert display("gone").delta == "Δgone"


def test_a_variant_is_shown_unless_its_base_is() -> None:
    hard = display("seper_hard")
    assert (hard.heading, hard.variant_of, hard.unit) == ("SePer (hard)", "seper", "probability")
    assert shown(["grogu", "gone", "seper_hard", "seper"]) == ["seper", "grogu", "gone"]
    assert shown(["gone", "seper_hard"]) == ["seper_hard", "gone"]


def test_a_variant_may_have_a_display_of_its_own() -> None:
    """A probability is not shown in nats, as its base is."""
    base, variant = display("gold_logprob"), display("gold_probability")
    assert (base.unit, variant.unit, variant.variant_of) == ("nats", "probability", "gold_logprob")
    assert base.heading != variant.heading
    assert shown(["gold_probability", "grogu"]) == ["grogu", "gold_probability"]


def test_a_meter_with_a_baseline_leads() -> None:
    assert leading(["grogu", "gone", "seper"]) == "seper"
    assert leading(["grogu", "gone"]) == "gone"
    assert leading(["grogu"]) == "grogu"
    assert leading([]) is None


def test_a_file_declares_too_once_it_was_named(tmp_path: Path) -> None:
    file = tmp_path / "declared_length.py"
    file.write_text(
        "from hopscope.runtime.ports import Display\n"
        'DISPLAY = Display("Length", unit="words", digits=0)\n'
        "def build(): ...\n"
    )
    assert display("declared_length") == Display("declared_length")
    code_files.run(str(file))
    assert display("declared_length") == Display("Length", unit="words", digits=0)


def test_rules_have_the_headings_that_they_declare() -> None:
    assert [rule_heading(rule) for rule in ("shapley", "leave_one_out", "equal_shares")] == [
        "Shapley",
        "leave-one-out",
        "equal-shares",
    ]


def test_answer_metrics_have_the_headings_that_they_declare() -> None:
    names = ("exact_match", "f1", "contains", "bertscore:model")
    assert [metric_heading(name) for name in names] == ["EM", "F1", "contains", "bertscore:model"]
