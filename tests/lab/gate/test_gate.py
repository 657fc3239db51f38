"""The gate fails where a paired test says that a metric fell, and tells everything it left out."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import hopscope
from hopscope.lab.gate import outcomes
from hopscope.runtime.errors import UsageError
from tests.lab.gate.gate_example import HOSTILE, fill, question

RIGHT = [True] * 24 + [False] * 6
BROKEN = [False] * 8 + RIGHT[8:]
"""Eight of thirty questions lost: p = 2^-8 by McNemar's test."""
LEVELS = [0.02 * place for place in range(30)]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("gate") / "runs.db"
    fill(file, "first", RIGHT, levels=LEVELS)
    fill(file, "same", RIGHT, levels=LEVELS, seed=1)
    fill(file, "broken", BROKEN, levels=[max(0.0, each - 0.05) for each in LEVELS])
    fill(file, "unmeasured", RIGHT, retriever="bm25:other")
    fill(file, "failed", [None] * 10 + RIGHT[10:])
    fill(
        file,
        "others",
        [True, False, True, True],
        questions=[question(0), question(1), question(98), question(99, id=HOSTILE)],
        label="naive:k=3",
    )
    return file


def test_a_metric_that_fell_fails_and_another_passes(database: Path) -> None:
    found = hopscope.gate("broken", "first", metrics={"f1": 0.0, "seper": 0.2}, store=database)
    fallen, held = found.rows
    assert not found.passed
    assert (fallen.metric, fallen.verdict, fallen.drop.test) == (
        "f1",
        "fell",
        "randomisation(resamples=2000, seed=0), one-sided",
    )
    assert fallen.drop.value == pytest.approx(8 / 30)
    assert fallen.drop.low is not None
    assert fallen.drop.low > 0
    # Two tests; the smaller p counts twice.
    assert fallen.drop.p is not None
    assert fallen.drop.p == pytest.approx(2**-8, abs=0.005)
    assert fallen.drop.adjusted == pytest.approx(2 * fallen.drop.p)
    assert (held.verdict, held.drop.p) == ("passed", pytest.approx(1.0, abs=0.01))
    assert held.power.drop == pytest.approx(0.25)


def test_shares_without_an_allowed_drop_have_an_exact_test(database: Path) -> None:
    [row] = hopscope.gate("broken", "first", metrics=["exact_match"], store=database).rows
    assert (row.drop.test, row.drop.p) == ("mcnemar(exact, one-sided)", 2**-8)
    better = hopscope.gate("first", "broken", metrics=["exact_match"], store=database)
    assert better.passed
    assert better.rows[0].drop.p == 1.0


def test_an_allowed_drop_is_allowed(database: Path) -> None:
    assert hopscope.gate("broken", "first", metrics={"f1": 0.2}, store=database).passed


def test_failed_runs_are_a_metric_and_otherwise_named(database: Path) -> None:
    found = hopscope.gate("failed", "first", store=database)
    rows = {row.metric: row for row in found.rows}
    assert list(rows) == ["answered", "f1"]  # SePer is not measured for `failed`
    assert rows["answered"].verdict == "fell"
    assert rows["answered"].drop.value == pytest.approx(1 / 3)
    # A failed run has no F1, not an F1 of 0.
    assert (rows["f1"].verdict, rows["f1"].drop.value, rows["f1"].drop.measured) == (
        "passed",
        0.0,
        20,
    )
    assert "naive: f1: 10 of 30 questions are not measured for both (the run failed)" in found.notes


def test_questions_and_workflows_without_a_counterpart_are_named(database: Path) -> None:
    found = hopscope.gate("others", "first", metrics=["f1"], store=database)
    assert found.only_candidate == ("q98", HOSTILE)
    assert found.only_baseline == tuple(f"q{place}" for place in range(2, 30))
    assert [row.drop.measured for row in found.rows] == [2]
    assert "naive:k=3 is compared with the baseline's naive" in found.notes
    assert "q2, q3" in found.markdown()
    with pytest.raises(UsageError, match="no workflow 'ircot': it has naive"):
        hopscope.gate("same", "first", workflows=["ircot"], store=database)


def test_a_metric_that_was_not_measured_is_never_zero(database: Path) -> None:
    with pytest.raises(UsageError, match="seper was measured for no question of unmeasured"):
        hopscope.gate("unmeasured", "first", metrics=["seper"], store=database)
    found = hopscope.gate("unmeasured", "first", store=database)
    assert [row.metric for row in found.rows] == ["answered", "f1"]
    assert "retriever differs: bm25:towns → bm25:other" in found.notes


def test_a_file_is_as_good_as_the_experiment(database: Path, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    written = hopscope.write_baseline("first", file, store=database)
    assert written.metrics[:2] == ["answered", "exact_match"]
    assert outcomes.read(file) == written
    assert "Nalmir" not in file.read_text()  # no answers
    metrics = {"f1": 0.0, "seper": 0.01}
    by_file, by_name = (
        hopscope.gate("broken", baseline, metrics=metrics, store=database)
        for baseline in (file, "first")
    )
    assert by_file == by_name
    assert hopscope.gate("broken", "first", metrics=metrics, store=database) == by_name
    with pytest.raises(UsageError, match=r"has no rouge_l, but answered.*write it again"):
        hopscope.gate("same", file, metrics=["rouge_l"], store=database)


def test_a_damaged_file_says_where(database: Path, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    hopscope.write_baseline("first", file, store=database)
    data = json.loads(file.read_text())
    data["scores"]["naive"]["f1"].pop()
    file.write_text(json.dumps(data))
    with pytest.raises(UsageError, match="naive has 29 values of f1 for 30 questions"):
        hopscope.gate("same", file, store=database)
    data["source"].pop("seed")
    file.write_text(json.dumps(data))
    with pytest.raises(UsageError, match=r"no baseline \(source.seed: Field required"):
        hopscope.gate("same", file, store=database)
    with pytest.raises(UsageError, match=r"neither an experiment of .* nor a file"):
        hopscope.gate("same", tmp_path / "none.json", store=database)


def test_seeds_confidence_and_power_are_told(database: Path) -> None:
    found = hopscope.gate("same", "first", metrics=["f1"], find=0.3, store=database)
    assert (found.candidate.seed, found.baseline.seed) == (1, 0)
    [row] = found.rows
    chance = row.power.chance
    # 24 of 30 right without noise: each is lost with chance .3/.8, and five are found, so that the
    # power is the chance that 24 draws with chance .375 hold five or more.
    assert chance.value is not None
    assert chance.value == pytest.approx(0.97, abs=0.02)
    assert row.power.needed is not None
    assert row.power.needed < 30
    note = found.table().notes[0]
    assert "confidence 0.95 over all 1 row" in note
    assert "seeds: same 1, first 0" in note


def test_junit_and_markdown_carry_hostile_names(database: Path) -> None:
    found = hopscope.gate("others", "first", metrics=["f1", "exact_match"], store=database)
    suite = ElementTree.fromstring(found.junit().encode())[0]
    assert [case.get("name") for case in suite.iter("testcase")] == ["f1", "exact_match"]
    assert "</testcase>@everyone see #1" in (suite.findtext("system-out") or "")
    text = found.markdown()
    assert "@everyone" not in text
    assert "#1" not in text
    assert "](http" not in text
    assert "\x1b" not in text
    broken = hopscope.gate("broken", "first", metrics=["f1"], store=database)
    case = next(ElementTree.fromstring(broken.junit().encode()).iter("testcase"))
    assert case.find("failure") is not None
    assert "fell by more than 0: 0.800 → 0.533" in case.find("failure").get("message")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"metrics": ["tokens"]}, "tokens is a cost"),
        ({"metrics": ["nonsense"]}, "choose from answered, bertscore"),
        ({"metrics": ["sepr"]}, "did you mean seper"),
        ({"metrics": {}}, "name at least one"),
        ({"metrics": {"f1": -0.1}}, "drop: give a number of at least 0"),
        ({"find": 0.0}, "find: give a number"),
        ({"confidence": 1.0}, "confidence: give a number"),
    ],
)
def test_wrong_use_is_told(database: Path, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        hopscope.gate("same", "first", store=database, **arguments)  # type: ignore[arg-type]
