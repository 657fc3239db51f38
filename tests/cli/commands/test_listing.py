"""`hopscope list` names options that can be given, and no others."""

import json
import sys
from pathlib import Path

import pytest

from hopscope.api import retrieval, spending
from hopscope.cli.main import main
from hopscope.runtime.errors import UsageError
from hopscope.runtime.specs import Spec

OWN = "it is the run's own"


def listed(capsys: pytest.CaptureFixture[str], kind: str) -> dict[str, dict[str, object]]:
    """The options of each component."""
    with pytest.raises(SystemExit) as stop:
        main(["list", kind, "--json"])
    assert stop.value.code == 0
    return {row["name"]: row["options"] for row in json.loads(capsys.readouterr().out)}


def refused(expression: str) -> bool:
    """Whether an option in it is refused because users cannot give it."""
    try:
        retrieval.parse(expression)
    except UsageError as error:
        return OWN in str(error)
    return False


def test_no_option_of_rerankers_and_compressors_is_the_runs_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Listed were meter and seed, which are refused to who gives them."""
    for kind, operator in (("rerankers", "RR"), ("compressors", "CP")):
        for name, options in listed(capsys, kind).items():
            for option in options:
                assert not refused(f"hopland@{operator}({name},{option}=1)"), (name, option)
    assert refused("hopland@RR(listwise,seed=1)")
    assert listed(capsys, "rerankers")["listwise"].keys() == {"reader", "window", "stride"}


def test_no_option_of_policies_is_the_runs_own(capsys: pytest.CaptureFixture[str]) -> None:
    found = listed(capsys, "policies")
    assert found["value"].keys() == {"file"}
    assert found["tasr"].keys() == {"threshold", "calibration"}
    with pytest.raises(UsageError, match=OWN):
        spending.policy(Spec.parse("value:f,workflow=x"), workflow="ircot", reader_name="tiny")


def test_what_others_offer_is_listed_with_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a name that is taken nor a module that cannot be imported hides the rest."""
    info = tmp_path / "elsewhere-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.5\n")
    points = "naive = listed_module\noutside = listed_module\nbroken = not_there\n"
    (info / "entry_points.txt").write_text(f"[hopscope.workflows]\n{points}")
    (tmp_path / "listed_module.py").write_text(
        '"""Ask twice.\n\nSomebody: Asking (arXiv 2401.00001).\n"""\n'
        "from pathlib import Path\ndef build(*, file: Path = Path('a')): ..."
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["list", "workflows", "--json"])
    assert stop.value.code == 0
    rows = {(row["name"], row["from"]): row for row in json.loads(capsys.readouterr().out)}
    outside = rows["outside", "elsewhere 1.5"]
    assert outside["summary"] == "Ask twice."
    assert outside["paper"] == "Somebody: Asking (arXiv 2401.00001)."
    assert outside["options"] == {"file": "a"}
    assert "hopscope has one of that name" in rows["naive", "elsewhere 1.5"]["summary"]
    assert "cannot be imported" in rows["broken", "elsewhere 1.5"]["summary"]
    assert ("naive", None) in rows
    with pytest.raises(SystemExit):
        main(["list", "workflows"])
    assert "from elsewhere 1.5" in capsys.readouterr().out
    monkeypatch.delitem(sys.modules, "listed_module")
