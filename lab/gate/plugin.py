"""The plug-in of pytest: runs, their credit, thresholds and the gate as fixtures.

Invariant: importing it imports nothing of Hopscope but this file, so that other projects' tests
start as fast as before. Fixtures import what they need when a test asks for them.

    @pytest.fixture(scope="session")
    def hopscope_settings():
        return {"reader": "hf:my/model", "retriever": "my-index", "workflow": "ircot"}

    @pytest.mark.hopscope("Where was Rosis Wallo born?", gold="Zana")
    def test_the_first_search_is_worth_its_price(hopscope_credit, hopscope_expect):
        hopscope_expect(hopscope_credit(step=0)).at_least(0.1)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from hopscope.api.credits import CreditRow
    from hopscope.api.measured_run import MeasuredRun
    from hopscope.api.session import Session
    from hopscope.lab.gate.report import GateReport
    from hopscope.lab.gate.thresholds import Expected, Measured

MARKER = "hopscope"
WRITE = "--hopscope-write-baselines"


class Gate(Protocol):
    """The fixture `hopscope_gate`."""

    def __call__(
        self,
        data: str | Path,
        baseline: str | Path,
        *,
        metrics: Mapping[str, float] | Sequence[str] | None = None,
        workflows: Sequence[str] | None = None,
        limit: int | None = None,
        threads: int = 1,
        **options: Any,
    ) -> "GateReport": ...


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("hopscope").addoption(
        WRITE,
        action="store_true",
        help="Tests with the fixture hopscope_gate write their baselines instead of comparing.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "hopscope(question, **arguments): the question of the fixtures hopscope_run and "
        "hopscope_credit, with the arguments of Session.ask: gold, workflow, options, ...",
    )


@pytest.fixture(scope="session")
def hopscope_settings() -> dict[str, Any]:
    """The arguments of `hopscope.Session`. Define this fixture in your conftest.py to choose the
    reader, the retriever, the workflow; by default the embedded ones."""
    return {}


@pytest.fixture(scope="session")
def hopscope_session(
    hopscope_settings: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[Session]":
    """A session for all tests, with a database of its own that begins empty."""
    from hopscope.api.session import Session

    own = {"store": tmp_path_factory.mktemp("hopscope") / "runs.db"}
    with Session(**{**own, **hopscope_settings}) as session:
        yield session


@pytest.fixture
def hopscope_run(request: pytest.FixtureRequest, hopscope_session: "Session") -> "MeasuredRun":
    """The run of the question that the test's marker names."""
    marker = request.node.get_closest_marker(MARKER)
    if marker is None or len(marker.args) != 1:
        raise pytest.UsageError(
            f"{request.node.nodeid}: hopscope_run needs a question: "
            '@pytest.mark.hopscope("Who ...?", gold="...")'
        )
    return hopscope_session.ask(*marker.args, **marker.kwargs)


@pytest.fixture
def hopscope_credit(hopscope_run: "MeasuredRun") -> "Callable[..., CreditRow]":
    """Find the credit of the run: `hopscope_credit()` is the total of the whole run,
    `hopscope_credit(step=0, rule="shapley")` that of a step; `meter` is `seper`."""

    def find(
        *, meter: str = "seper", rule: str | None = None, step: int | None = None
    ) -> "CreditRow":
        rule = rule or ("total" if step is None else "trajectory")
        wanted = (meter, rule, step)
        for row in hopscope_run.credits:
            if (row.meter, row.rule, row.step) == wanted and row.passage is None:
                return row
        known = sorted({f"{row.meter} {row.rule} {row.step}" for row in hopscope_run.credits})
        raise AssertionError(
            f"no credit by {meter} and {rule} of {'the run' if step is None else f'step {step}'}; "
            f"measured (meter, rule, step): {', '.join(known) or 'nothing'}"
            + "".join(f"; {problem}" for problem in hopscope_run.problems)
        )

    return find


@pytest.fixture
def hopscope_expect() -> "Callable[[Measured], Expected]":
    """Thresholds for a number with an interval: `hopscope_expect(number).at_least(0.2)`."""
    from hopscope.lab.gate.thresholds import Expected

    return Expected


@pytest.fixture
def hopscope_gate(request: pytest.FixtureRequest, hopscope_session: "Session") -> Gate:
    """Answer a dataset and compare it with a baseline file, as `hopscope gate` does; the test fails
    where a metric fell. With --hopscope-write-baselines it writes the file and skips the test."""

    def compare(
        data: str | Path,
        baseline: str | Path,
        *,
        metrics: Mapping[str, float] | Sequence[str] | None = None,
        workflows: Sequence[str] | None = None,
        limit: int | None = None,
        threads: int = 1,
        **options: Any,
    ) -> "GateReport":
        from hopscope.lab.evaluating import evaluate
        from hopscope.lab.gate.gate import gate, write_baseline

        experiment = evaluate(
            hopscope_session,
            data,
            workflows=workflows,
            name=request.node.name,
            limit=limit,
            threads=threads,
        )
        if request.config.getoption(WRITE):
            names = None if metrics is None else list(metrics)
            write_baseline(experiment.name, baseline, metrics=names, store=experiment.store)
            pytest.skip(f"wrote the baseline {baseline}")
        report = gate(experiment.name, baseline, metrics=metrics, store=experiment.store, **options)
        request.node.add_report_section("call", "hopscope gate", report.markdown())
        if not report.passed:
            fallen = [row.summary for row in report.rows if row.verdict == "fell"]
            pytest.fail("\n".join(fallen), pytrace=False)
        return report

    return compare
