"""`hopscope list` names options that can be given, and no others."""

import json

import pytest

from hopscope.cli import retrieval, spending
from hopscope.cli.main import main
from hopscope.runtime.errors import UsageError

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
        spending.policy("value:f,workflow=x", workflow="ircot", reader_name="tiny")
