"""`hopscope run` measures with the meters and shares by the rules that it is given."""

import json
from pathlib import Path
from typing import Any

import pytest

from hopscope.cli.main import main
from hopscope.store.store import Store

ASKED = ("Where was Rosis Wallo born?", "--gold", "Zana", "-w", "naive", "--samples", "1")


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """The exit code, and what `--json` prints."""
    code = 0
    try:
        main([*arguments, "--json"])
    except SystemExit as stop:
        code = int(stop.code or 0)
    printed = capsys.readouterr().out
    return code, json.loads(printed) if printed else None


def kept(database: Path, run: str) -> set[tuple[str, str]]:
    with Store.open(database, create=False) as store:
        return {(credit.meter, credit.rule) for credit in store.credits(run)}


def test_a_run_is_measured_as_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "runs.db"
    chosen = ("--meter", "seper", "--rule", "leave-one-out", "--rule", "solo")
    code, found = call(capsys, "run", *ASKED, *chosen, "--db", str(database))
    assert code == 0
    shares = {("seper", rule) for rule in ("level", "leave_one_out", "solo", "total")}
    assert kept(database, found["id"]) == shares


def test_a_run_can_be_answered_only_and_resumed_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database, checkpoint = tmp_path / "runs.db", tmp_path / "steps.db"
    places = ("--db", str(database), "--checkpoint", str(checkpoint))
    code, found = call(capsys, "run", *ASKED, "--meter", "none", *places)
    assert (code, found["status"], found["appraisal"]) == (0, "ok", None)
    assert kept(database, found["id"]) == set()
    code, again = call(capsys, "resume", *places)
    assert (code, again) == (0, found)
    assert kept(database, found["id"]) == set()


def test_a_resumed_run_is_measured_as_it_was_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here into another database, where the run is not known."""
    checkpoint, other = tmp_path / "steps.db", tmp_path / "other.db"
    chosen = ("--meter", "grogu", "--rule", "trajectory", "--checkpoint", str(checkpoint))
    code, found = call(capsys, "run", *ASKED, *chosen, "--db", str(tmp_path / "runs.db"))
    assert code == 0
    call(capsys, "resume", "--checkpoint", str(checkpoint), "--db", str(other))
    shares = {("grogu", rule) for rule in ("level", "trajectory", "total")}
    assert kept(other, found["id"]) == shares


def test_an_unknown_meter_is_refused_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["run", *ASKED, "--meter", "sepper", "--db", str(tmp_path / "runs.db")])
    assert "no 'sepper' among meters" in capsys.readouterr().err


def test_options_stand_with_the_workflow_as_in_eval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They count before -o and -k; `run` knew no workflow of such a name."""
    asked = ("run", ASKED[0], "--meter", "none", "--db", str(tmp_path / "runs.db"))
    code, found = call(capsys, *asked, "-w", "naive:k=1", "-k", "4", "-o", "max_tokens=8")
    assert code == 0
    assert found["workflow"] == "naive"
    assert len(found["steps"][0]["passages"]) == 1
    code, found = call(capsys, *asked, "-w", "naive:policy=never")
    assert [step["name"] for step in found["steps"] if step["query"]] == []


def test_the_golds_log_probability_goes_everywhere_that_seper_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Measured, shown, shared by all rules, compared, exported and traced, on both scales."""
    db, traced = ("--db", str(tmp_path / "runs.db")), tmp_path / "spans.jsonl"
    both = ("--meter", "gold-logprob", "--meter", "gold-probability")
    code, found = call(
        capsys, "run", *ASKED, *both, "--rule", "all", *db, "--trace-file", str(traced)
    )
    assert code == 0
    rules = ("level", "total", "trajectory", "solo", "leave_one_out", "shapley")
    names = ("gold_logprob", "gold_probability")
    assert kept(tmp_path / "runs.db", found["id"]) == {(m, rule) for m in names for rule in rules}
    whole = {name: found["total"][name] for name in names if name in found["total"]}
    [total] = whole.values()  # a variant is not shown beside its base
    assert total["delta"] == pytest.approx(total["after"] - total["before"])
    assert (total["n"], total["low"], total["reason"]) == (1, None, None)
    for name in names:
        assert f"{name}.shapley" in traced.read_text()
    code, shared = call(capsys, "credit", *both, "--over", "passages", *db)
    values = {(c["meter"], c["rule"], c["passage"]): c["value"] for c in shared["credits"]}
    for name in names:
        own = [v for (m, rule, passage), v in values.items() if (m, rule) == (name, "shapley")]
        assert sum(own) == pytest.approx(values[name, "leave_one_out", None], abs=1e-9)
    assert values["gold_logprob", "leave_one_out", None] == pytest.approx(total["delta"])

    asked = ("hopland:test", "--limit", "2", "-w", "naive", "--name", "e", *both[2:], *db)
    assert call(capsys, "eval", *asked)[0] == 0
    _, tables = call(capsys, "compare", "e", "-t", "overview", *db)
    assert '"gold_probability_delta"' in json.dumps(tables)
    with pytest.raises(SystemExit, match="0"):
        main(["ls", *db])
    listed = capsys.readouterr().out
    assert "ΔGoldLogP" in listed or "ΔGoldP" in listed
    with pytest.raises(SystemExit, match="0"):
        main(["export", "rows", "e", "--out", str(tmp_path / "rows"), "--form", "csv", *db])
    written = "".join(file.read_text() for file in (tmp_path / "rows").rglob("*.csv"))
    assert "gold_probability" in written
