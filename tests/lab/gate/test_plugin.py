"""The plug-in of pytest, in a pytest of its own."""

import subprocess
import sys
from importlib.metadata import entry_points
from types import SimpleNamespace

import pytest

import hopscope
from hopscope.lab.gate import plugin
from hopscope.lab.gate.thresholds import Expected
from hopscope.runtime.types import Measurement

pytest_plugins = ["pytester"]

QUESTION = "Where was Rosis Wallo born?"
CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def hopscope_settings():
    return {"workflow": "naive", "samples": 4, "meters": ["seper"], "rules": ["trajectory"]}
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """All modules that the tests inside need: what they load first is forgotten after them, and
    numpy cannot be loaded twice."""
    folder = tmp_path_factory.mktemp("loaded")
    with hopscope.Session(
        store=folder / "runs.db",
        workflow="naive",
        samples=2,
        meters=["seper"],
        rules=["trajectory"],
    ) as session:
        made = hopscope.evaluate(session, "hopland:dev", limit=2)
        assert session.ask(QUESTION, gold="Zana").credits[0].meter
    hopscope.write_baseline(made.name, folder / "base.json", store=folder / "runs.db")
    report = hopscope.gate(made.name, folder / "base.json", store=folder / "runs.db")
    assert report.markdown()


@pytest.fixture
def plugged(loaded: None, pytester: pytest.Pytester) -> pytest.Pytester:
    """Loads the plug-in, unless the installed package does."""
    pytester.makeconftest(CONFTEST)
    if not any(found.name == "hopscope" for found in entry_points(group="pytest11")):
        pytester.makeini(f"[pytest]\naddopts = -p {plugin.__name__}\n")
    return pytester


def test_a_test_sees_its_run_and_its_credit(plugged: pytest.Pytester) -> None:
    plugged.makepyfile(
        f"""
        import pytest

        @pytest.mark.hopscope({QUESTION!r}, gold="Zana")
        def test_credit(hopscope_run, hopscope_credit, hopscope_expect):
            assert [step.kind for step in hopscope_run.steps] == ["retrieve", "generate"]
            total, first = hopscope_credit(), hopscope_credit(step=0)
            assert total.value == pytest.approx(first.value)
            hopscope_expect(total).at_least(-1.0)
            with pytest.raises(AssertionError, match="no credit by grogu and total of the run"):
                hopscope_credit(meter="grogu")

        @pytest.mark.hopscope({QUESTION!r}, gold="Zana")
        def test_too_much(hopscope_credit, hopscope_expect):
            hopscope_expect(hopscope_credit()).at_least(1.5)

        def test_no_question(hopscope_run):
            pass
        """
    )
    result = plugged.runpytest("--strict-markers")
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*needs a question*", "*AssertionError: *is below 1.5"])


def test_a_dataset_is_compared_with_its_baseline(plugged: pytest.Pytester) -> None:
    plugged.makepyfile(
        """
        import json
        from pathlib import Path

        import pytest

        @pytest.fixture(scope="session")
        def hopscope_settings():
            return {"workflow": "naive", "meters": []}

        def test_quality(hopscope_gate):
            report = hopscope_gate("hopland:dev", "baseline.json", metrics={"f1": 0.0}, limit=5)
            assert report.rows[0].drop.measured == 5

        def test_better_before(hopscope_gate):
            data = json.loads(Path("baseline.json").read_text())
            data["scores"]["naive"]["f1"] = [3.0] * 5
            Path("better.json").write_text(json.dumps(data))
            hopscope_gate("hopland:dev", "better.json", metrics=["f1"], limit=5)
        """
    )
    written = plugged.runpytest("--hopscope-write-baselines", "-k", "quality", "-rs")
    written.assert_outcomes(skipped=1, deselected=1)
    written.stdout.fnmatch_lines(["*wrote the baseline baseline.json"])
    result = plugged.runpytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["naive: f1 fell by more than 0: 3.000 →*", "*hopscope gate call*"])


def test_other_projects_start_as_fast_as_before() -> None:
    """The plug-in is imported at every start of pytest, in every project of the environment."""
    code = (
        "import sys, pytest; before = set(sys.modules); "
        f"import {plugin.__name__}; "
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert loaded == ["hopscope", "hopscope.lab", "hopscope.lab.gate", "hopscope.lab.gate.plugin"]


def number(value: float | None, low: float | None = None, high: float | None = None) -> Expected:
    return Expected(Measurement(value=value, low=low, high=high, reason=None if value else "why"))


def test_an_interval_with_the_threshold_in_it_decides_nothing() -> None:
    unsure = number(0.5, 0.3, 0.7)
    unsure.at_least(0.6)
    unsure.at_most(0.4)
    with pytest.raises(AssertionError, match=r"0.500 \[0.300, 0.700\] is not shown to be at least"):
        unsure.at_least(0.4, shown=True)
    with pytest.raises(AssertionError, match=r"is not shown to be at most 0.6"):
        unsure.at_most(0.6, shown=True)


def test_an_interval_on_one_side_decides() -> None:
    sure = number(0.5, 0.3, 0.7)
    sure.at_least(0.3, shown=True)
    sure.at_most(0.7, shown=True)
    with pytest.raises(AssertionError, match=r"is below 0.8"):
        sure.at_least(0.8)
    with pytest.raises(AssertionError, match=r"is above 0.2"):
        sure.at_most(0.2)
    exact = number(0.5)
    exact.at_least(0.5, shown=True)
    with pytest.raises(AssertionError, match=r"^0.500 is above 0.4$"):
        exact.at_most(0.4)


def test_a_number_that_was_not_measured_passes_nothing() -> None:
    with pytest.raises(AssertionError, match="not measured: why"):
        number(None).at_least(-1.0)
    with pytest.raises(AssertionError, match="not measured: nobody tells why"):
        Expected(SimpleNamespace(value=None, reason=None, low=None, high=None)).at_most(9.0)
