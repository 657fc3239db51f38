"""`hopscope credit EXPERIMENT` measures as the experiment did, and `compare` says what it shows."""

import json
from typing import Any

import pytest

from hopscope.api.credit_games import CounterfactualName, Mode, Over
from hopscope.api.credit_runs import CreditArguments, Defaults
from hopscope.store.store import Store
from tests.cli.experiment_example import call


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return ["--db", str(tmp_path_factory.mktemp("credited") / "runs.db")]


def table(
    capsys: pytest.CaptureFixture[str], database: list[str], *arguments: str
) -> dict[str, Any]:
    code, out, err = call(capsys, "compare", "few", "--json", *arguments, *database)
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)[0]
    return found


def test_an_experiment_is_credited_as_it_was_measured(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    """One of four samples was measured with ten, after which ΔSePer was `- 0/12` in the table, and
    random counterfactuals stood in the tables without a word."""
    asked = ["hopland:dev", "-w", "naive", "--limit", "2", "--samples", "4", "--name", "few"]
    code, _, err = call(capsys, "eval", *asked, "--meter", "seper", *database)
    assert code == 0, err
    shown = ("-t", "credit_by_step")
    before = table(capsys, database, *shown)
    [note] = [note for note in before["notes"] if "appraisal" in note]
    assert ", the original, by hopland@" in note
    assert "samples=4" in note
    assert "2 runs" in note

    code, out, err = call(capsys, "credit", "few", *database)
    assert code == 0, err
    assert "2 of 2 runs already have these credits" in err
    assert "Means over 2 runs" in out
    assert "retrieval 1" in out
    assert out.count("samples=4") == 1
    code, out, _ = call(capsys, "credit", "few", "--each", *database)
    assert out.count("samples=4") == 3

    code, out, err = call(
        capsys, "credit", "few", "--counterfactual", "random", "--json", *database
    )
    assert code == 0, err
    measured = [json.loads(line)["appraisal"] for line in out.splitlines()]
    assert [each["settings"]["samples"] for each in measured] == [4, 4]
    after = table(capsys, database, *shown)
    assert after["rows"] == before["rows"]
    [note] = [note for note in after["notes"] if "appraisal" in note]
    other = measured[0]["id"]
    assert f"also measured: {other[:8]} (--appraisal)" in note
    for which in ("latest", other[:6]):
        latest = table(capsys, database, *shown, "--appraisal", which)
        [note] = [note for note in latest["notes"] if "appraisal" in note]
        assert f"appraisal {other[:8]}, by" in note
        assert "counterfactual=random" in note
        assert latest["rows"][0]["trajectory"]["measured"] == 2
    code, _, err = call(capsys, "compare", "few", "--appraisal", "zz", *database)
    assert code == 2
    assert "'zz' does not name one of the appraisals: give original, latest" in err


def test_a_run_is_credited_with_the_samples_of_its_own_appraisal(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    question = ["Where was Rosis Wallo born?", "--gold", "Zana", "-w", "naive", "--samples", "3"]
    options = ["-o", "seper.weight=uniform", "--entailment", "equivalence"]
    code, _, err = call(capsys, "run", *question, *options, *database)
    assert code == 0, err
    code, out, err = call(capsys, "credit", "--json", *database)
    assert code == 0, err
    found = json.loads(out)["appraisal"]
    assert found["settings"]["samples"] == 3
    assert found["settings"]["seper.weight"] == "uniform"
    assert found["entailment"].startswith("equivalence:")
    code, out, _ = call(capsys, "credit", "--json", "--samples", "5", *database)
    assert json.loads(out)["appraisal"]["settings"]["samples"] == 5
    with Store.open(database[1]) as store:
        assert Defaults.of_run(store, store.latest().id).samples == 3  # still the first


def test_options_of_what_is_not_measured_are_not_taken_over() -> None:
    of = Defaults(samples=4, options={"seper.weight": "uniform", "shapley.permutations": "8"})
    given = CreditArguments(
        rules=("trajectory",),
        meters=("seper_hard",),
        corpus=None,
        reader=None,
        thinking=None,
        entailment=None,
        samples=None,
        seed=None,
        options={},
        counterfactual=CounterfactualName.empty,
        mode=Mode.frozen,
        over=Over.steps,
        golds=(),
    )
    assert given.wanted(of).options == {"seper.weight": "uniform"}
    # Of the experiment's own reader `--thinking` holds, and was passed over without a word.
    thinks = of._replace(reader="hf:FOLDER,thinking=on,dtype=float32")
    assert given.wanted(thinks).reader == "hf:FOLDER,thinking=on,dtype=float32"
    told = given._replace(thinking="off")
    assert told.wanted(thinks).reader == "hf:FOLDER,dtype=float32,thinking=off"
    named = told._replace(reader="hf:OTHER,thinking=on")
    assert named.wanted(thinks).reader == "hf:OTHER,thinking=on"
    assert given._replace(meters=("grogu",), options={"a.b": "c"}).wanted(of).options == {
        "a.b": "c"
    }
