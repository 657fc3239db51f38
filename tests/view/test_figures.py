"""Pictures of stored runs and experiments: the numbers of the records, and nothing else."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopscope.cli.commands.view.figure import Figure
from hopscope.runtime.errors import UsageError
from hopscope.store.store import Store
from hopscope.view import drawing, experiment_figures, run_figures, sampled_answers
from hopscope.view.pictures import answers, specification, trust
from tests.cli.experiment_example import call
from tests.view import experiment

NAMES = [*run_figures.FIGURES, *experiment_figures.FIGURES]


def figure(name: str, database: Path) -> dict[str, Any]:
    """The specification of a picture of the IRCoT run or of the experiment."""
    with Store.open(database, reading=True) as store:
        if name in run_figures.FIGURES:
            run = next(each.id for each in store.runs() if each.workflow == "ircot")
            return run_figures.FIGURES[name](run_figures.RunRecords.load(store, run))
        records = experiment_figures.records_of(store, experiment.NAME)
        return experiment_figures.FIGURES[name](records)


def test_the_command_names_every_picture() -> None:
    assert {each.value for each in Figure} == {*NAMES, "answers"}


@pytest.mark.parametrize("name", NAMES)
def test_each_picture_is_drawn_with_marks_and_a_table(name: str, database: Path) -> None:
    """A specification with a wrong field or type draws an empty frame, or warns."""
    spec = figure(name, database)
    columns, rows = specification.table(spec)
    assert rows
    assert spec["description"]
    assert all(key in columns or key in row for row in rows for key in columns)
    svg = drawing.draw(spec, "svg").decode()
    marks = svg.count('role="graphics-symbol"') + svg.count('aria-roledescription="')
    assert marks > 2
    assert "NaN" not in svg
    assert "undefined" not in svg


def test_the_waterfall_has_the_values_of_the_report(database: Path) -> None:
    rows = figure("belief", database)["data"]["values"]
    assert [row["end"] for row in rows] == pytest.approx([0.1, 0.3, 0.9, 0.9])
    assert [row["change"] for row in rows[1:]] == pytest.approx([0.2, 0.6, 0.0])
    assert [row["kind"] for row in rows] == ["level", "gain", "gain", "level"]


def test_synergy_is_symmetric_and_tells_who_needs_whom(database: Path) -> None:
    rows = figure("synergy", database)["data"]["values"]
    found = {(r["row"], r["column"]): r["value"] for r in rows if r["meter"] == "SePer"}
    assert found["0 retrieve", "1 retrieve"] == pytest.approx(0.6)
    assert found["1 retrieve", "0 retrieve"] == found["0 retrieve", "1 retrieve"]
    assert found["0 retrieve", "2 retrieve"] == 0


def test_failures_are_shares_by_step_and_hops(database: Path) -> None:
    rows = figure("failures", database)["data"]["values"]
    whole = [row for row in rows if row["step"] == "run" and row["error"] == "retriever"]
    assert {row["hops"]: (row["share"], row["answers"]) for row in whole} == {
        "1": (1.0, 2),
        "2": (1.0, 2),
    }


def test_the_frontier_leaves_out_who_costs_more_and_is_no_better(database: Path) -> None:
    rows = figure("frontier", database)["data"]["values"]
    assert {row["system"]: (row["cost"], row["quality"]) for row in rows} == {
        "naive": (420, 0),
        "ircot": (1260, 1),
    }
    assert all(row["frontier"] for row in rows)


def test_of_many_runs_some_are_drawn_spread_evenly_over_workflows() -> None:
    """Workflows take turns in a plan: every 20th run would be of one of them."""
    count = 20 * specification.MOST
    free = np.arange(count) % 7 - 3.0
    totals = trust.Totals(free, -free, lambda at: [(str(i), "ab"[i % 2]) for i in at])
    spec = trust.spec({"grogu": totals}, experiment="e")
    found = spec["data"]["values"]
    assert len({row["run"] for row in found}) == specification.MOST
    of = Counter(row["system"] for row in found)
    assert of["a"] == pytest.approx(of["b"], rel=0.01)
    assert all(row["free"] == int(row["run"]) % 7 - 3 == -row["gold"] for row in found)
    agree = int((free == 0).sum())
    assert f"of 100,000 runs; they agree on the sign of {agree:,}." in spec["description"]
    assert "Drawn are 5,000 of them" in spec["description"]
    assert specification.spread(3, 5) == [0, 1, 2]


def test_each_label_free_meter_has_a_map_of_trust() -> None:
    """Both fit in one picture of 5,000 marks."""
    count = 2 * specification.MOST
    free = np.arange(count) / count
    totals = trust.Totals(free, free, lambda at: [(str(i), "a") for i in at])
    meters = {"grogu": totals, "semantic_entropy": totals}
    spec = trust.spec(meters, experiment="e")
    of = Counter(row["meter"] for row in spec["data"]["values"])
    assert of == {"GroGU": specification.MOST // 2, "SemEnt": specification.MOST // 2}
    assert spec["title"]["text"] == "Where to trust GroGU and SemEnt in e"
    none = trust.Totals(free[:0], free[:0], lambda at: [])
    assert "facet" not in trust.spec({**meters, "semantic_entropy": none}, experiment="e")
    with pytest.raises(UsageError, match="no run of e was measured by grogu and seper"):
        trust.spec({"grogu": none}, experiment="e")


def test_rare_answers_share_a_band_and_right_ones_do_not() -> None:
    rows = [
        {"order": 0, "step": "0", "answer": str(i), "mass": (i + 1) / 210, "gold": i == 0}
        for i in range(20)
    ]
    found = answers.spec(rows, question="q")["data"]["values"]
    assert len(found) == answers.SHOWN + 1
    assert sum(row["mass"] for row in found) == pytest.approx(1)
    assert [row["answer"] for row in found if row["gold"]] == ["0"]


def test_every_band_is_at_every_step_and_the_mass_that_is_not_stored_is_one() -> None:
    """An area without a value at a step would go past it."""
    rows = [
        {"order": 0, "step": "closed book", "answer": "Bo", "mass": 0.75, "gold": False},
        {"order": 1, "step": "0 retrieve", "answer": "Ada", "mass": 1.0, "gold": True},
    ]
    found = answers.spec(rows, question="q")["data"]["values"]
    assert [(row["step"], row["band"], row["mass"]) for row in found] == [
        ("closed book", "right: Ada", 0.0), ("closed book", "Bo", 0.75),
        ("closed book", answers.REST, 0.25), ("0 retrieve", "right: Ada", 1.0),
        ("0 retrieve", "Bo", 0.0), ("0 retrieve", answers.REST, 0.0),
    ]  # fmt: skip


def test_the_stream_has_the_stored_answers_and_asks_no_model(database: Path) -> None:
    rows = figure("answers", database)["data"]["values"]
    right = [row["mass"] for row in rows if row["gold"]]
    assert right == pytest.approx([0.1, 0.3, 0.9, 0.9])  # the belief


def test_answers_are_sampled_again_with_the_mass_of_the_belief(tmp_path: Path) -> None:
    """The reader that measured the run gives the same samples, so right answers have SePer's
    mass."""
    from hopscope.api.session import Session

    with Session(store=tmp_path / "runs.db", samples=4, workflow="naive") as session:
        run = session.ask("Who is the mayor of Port Gordon?", gold="Inga Lamlock")
        records = run_figures.RunRecords.load(session.store, run.id)
        assert records.provenance is not None
        models = session.reader, session.entailment
        spec = sampled_answers.spec(records.run, records.provenance, *models)
    rows = spec["data"]["values"]
    last = [row for row in rows if row["order"] == len(records.run.steps)]
    assert sum(row["mass"] for row in last) == pytest.approx(1)
    right = sum(row["mass"] for row in last if row["gold"])
    assert right == pytest.approx(records.report["total"]["seper"]["after"])
    other = records.provenance.model_copy(update={"reader": "another"})
    with pytest.raises(UsageError, match="was measured by another"):
        sampled_answers.spec(records.run, other, *models)


def test_a_run_that_was_not_measured_says_what_measures_it(database: Path) -> None:
    with Store.open(database, reading=True) as store:
        run = store.latest()
    bare = run_figures.RunRecords(run, [], [], [])
    for name in run_figures.FIGURES:
        with pytest.raises(UsageError, match=r"hopscope credit|no measured|a measured"):
            run_figures.FIGURES[name](bare)


@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_the_command_writes_each_form(
    form: str, database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"figure.{form}"
    arguments = ("workflows", experiment.NAME, "--out", str(out), "--db", str(database))
    code, _, err = call(capsys, "figure", *arguments)
    assert code == 0, err
    starts = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}
    assert out.read_bytes().startswith(starts[form])
    if form == "pdf":
        assert b"/FontFile" in out.read_bytes()
    out.write_text("mine")
    code, _, err = call(capsys, "figure", *arguments)
    assert (code, out.read_text()) == (2, "mine")
    assert "is there already: give --overwrite" in err
    assert call(capsys, "figure", *arguments, "--overwrite")[0] == 0
    assert out.read_bytes().startswith(starts[form])


def test_the_command_prints_the_specification(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = call(capsys, "figure", "belief", "--json", "--db", str(database))
    assert code == 0
    assert json.loads(out)["$schema"] == specification.SCHEMA


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("workflows", "nothere"), "there are"),
        (("belief", "nothere"), "hopscope ls"),
        (("belief", "last", "--out", "figure.bmp"), "must end in .svg, .png or .pdf"),
    ],
)
def test_wrong_use_is_told(
    arguments: tuple[str, ...],
    told: str,
    database: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = call(capsys, "figure", *arguments, "--db", str(database))
    assert code == 2
    assert told in err


def test_without_vl_convert_the_install_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    drawing.converter.cache_clear()
    with pytest.raises(UsageError, match=r"pip install 'hopscope\[view\]'"):
        drawing.converter()
