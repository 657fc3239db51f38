"""Every table at 60, 80 and 120 columns, on terminals of UTF-8 and of ASCII, as drawn before.

`pytest tests/cli/views/test_screens.py --update-golden` draws the files in `screens`
anew; look at them.
"""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from hopscope.api.views import credit_table, render
from hopscope.api.views.encoding import prepare
from hopscope.cli.commands.reports import erag
from hopscope.cli.main import main
from hopscope.cli.views import evaluation_report, progress, searching
from hopscope.lab.experiments.estimate import CostEstimate
from hopscope.lab.experiments.tally import Mean, Row, Tally
from hopscope.lab.table_forms import terminal
from hopscope.lab.table_forms.table import Table
from hopscope.runtime.budget.prices import ModelPrice, Price
from hopscope.runtime.types import Hit, Measurement, Usage
from hopscope.tracing.erag.labels import Ranking
from hopscope.tracing.erag.report import ERAGReport, RankAgreement, RunRankings
from hopscope.tracing.reports.appraised import Appraised
from hopscope.tracing.statistics.over_questions import Difference, Estimate, Statistic
from tests.cli.views.screens_example import ARMS, ENTRIES, NAME, appraised, fill, passages, run_of

SCREENS = Path(__file__).parent / "screens"
PRICE = Price(model=ModelPrice(input=1.0, output=10.0))
WIDTHS = (60, 80, 120)
ENCODINGS = ("utf-8", "ascii")


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("screens") / "runs.db"
    fill(file)
    return file


def _command(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert not ended.value.code


def _tally() -> Tally:
    tally = Tally([], {}, {})
    usage = Usage(input_tokens=1_234_567, output_tokens=89_012, calls=4321)
    for arm, right in zip(ARMS, (0.61, 0.93), strict=True):
        tally.rows[arm] = Row(
            items=1000,
            ok=997,
            failed=2,
            right=Mean(right * 997, 997),
            gain=Mean(0.4 * 990, 990),
            usage=usage,
            queries=2345,
            seconds=700.0,
        )
    return tally


def _board() -> None:
    render.out().print(progress.Board(_tally(), PRICE).__rich__().renderables[0])


def _estimates() -> None:
    estimate = CostEstimate.model_construct(
        items=980,
        calls=3920.0,
        input_tokens=1_200_000.0,
        output_tokens=88_000.0,
        thinking_tokens=None,
        seconds=5025.0,
        cost=2.08,
        n=3,
        basis="trial of 3 questions",
    )
    found = [estimate.model_copy(update={"arm": arm}) for arm in ARMS]
    evaluation_report.show_estimates(found, NAME, json=False)


def _overview() -> list[Table]:
    """Many measures of few systems."""
    names = ("EM", "SePer", "ΔSePer", "GroGU", "retrievals", "calls", "tokens", "seconds", "USD")
    figure = Estimate(value=0.5, measured=997, total=1000, questions=997, low=0.25, high=0.75)
    rows = [{"system": arm, "failed": 3, **dict.fromkeys(names, figure)} for arm in ARMS]
    columns = {"system": "system", "failed": "failed", **{name: name for name in names}}
    note = "SePer and GroGU: appraisal 2d60882d, the original, by hf:models/Qwen3-8B@9c925d64"
    return [Table(name="o", title="Means", columns=columns, rows=tuple(rows), notes=(note,))]


def _differences() -> list[Table]:
    """More rows than columns."""
    figure = Difference(value=0.5, measured=997, total=1000, low=0.25, high=0.75)
    rows = [
        {"measure": name, "system": ARMS[0], "versus": ARMS[1], "difference": figure, "p": 0.001}
        for name in ("EM", "SePer", "ΔSePer", "GroGU", "retrievals", "calls", "tokens")
    ]
    columns = {name: name for name in rows[0]}
    return [Table(name="d", title="Differences", columns=columns, rows=tuple(rows))]


def _credits() -> None:
    run = run_of(2)
    credit_table.show(run, Appraised(*appraised(run, 0.375)), json=False)


def _means() -> None:
    runs = [run_of(place) for place in range(4)]
    credit_table.show_means(
        [
            (ARMS[place % 2], run, Appraised(*appraised(run, 0.375)))
            for place, run in enumerate(runs)
        ]
    )


def _erag() -> None:
    names = ("P@1", "P@3", "AP", "RR", "nDCG@3", "success@3")
    run = run_of(2)
    one = Measurement(value=0.5)
    rankings = tuple(
        Ranking(
            step=step,
            passages=("a", "b", "c"),
            labels=(one,) * 3,
            measures=dict.fromkeys(names, one),
        )
        for step in (0, None)
    )
    row = RunRankings(
        id=run.id,
        question=run.question.text,
        workflow=run.workflow,
        answer=run.answer,
        end_to_end=one,
        rankings=rankings,
    )
    mean = Statistic(value=0.5, low=0.25, high=0.75, measured=1, total=1)
    erag._show(
        ERAGReport(
            estimator="",
            averages=dict.fromkeys(names, mean),
            agreement=dict.fromkeys(names, RankAgreement(kendall=one, spearman=one)),
            runs=(row,),
        )
    )


def _search() -> None:
    hits = [Hit(passage=each, score=12.5 - i) for i, each in enumerate(passages())]
    for part in searching.table("1", ENTRIES[0].question.text, hits):
        render.out().print(part, markup=False)


def _checks() -> None:
    rows = [
        ("hopscope", "ok", "0.1.0"),
        ("extra train", "missing", "lightgbm: pip install 'hopscope[train]'"),
        ("database", "ok", "/home/ada/.local/share/hopscope/hopscope.db"),
    ]
    render.show_checks(rows, json=False)


def _stored(*arguments: str) -> Callable[[Path], None]:
    return lambda db: _command(*arguments, "--db", str(db))


TABLES: dict[str, Callable[[Path], None]] = {
    "ls": _stored("ls"),
    "show": _stored("show"),
    "score": _stored("score", NAME, "-m", "exact_match", "-m", "contains"),
    "errors": _stored("errors", NAME, "-w", ARMS[0]),
    "compare": lambda _: terminal.show(_overview(), None),
    "compare -t differences": lambda _: terminal.show(_differences(), None),
    "compare -t flipped": _stored("compare", NAME, "-t", "flipped"),
    "budget explain": _stored("budget", "explain"),
    "list credit": lambda _: _command("list", "credit"),
    "eval": lambda _: _board(),
    "eval --dry-run": lambda _: _estimates(),
    "credit": lambda _: _credits(),
    "credit EXPERIMENT": lambda _: _means(),
    "erag": lambda _: _erag(),
    "index search": lambda _: _search(),
    "doctor": lambda _: _checks(),
}


def drawn(
    draw: Callable[[Path], None],
    db: Path,
    width: int,
    encoding: str,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """What stands on such a terminal afterwards."""
    screen = io.BytesIO()
    terminal = io.TextIOWrapper(screen, encoding=encoding)
    with monkeypatch.context() as patched:
        patched.setenv("COLUMNS", str(width))
        patched.setattr(sys, "stdout", terminal)
        prepare()
        draw(db)
        terminal.flush()
    text = screen.getvalue().decode(encoding)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("width", WIDTHS)
def test_tables_are_drawn_as_before(
    width: int,
    encoding: str,
    db: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    told = [
        f"$ hopscope {name}\n{drawn(draw, db, width, encoding, monkeypatch)}"
        for name, draw in TABLES.items()
    ]
    found = "\n".join(told)
    golden = SCREENS / f"{width}-{encoding}.txt"
    if request.config.getoption("--update-golden"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


WRAPPED_BY_THE_TERMINAL = ("budget explain",)
"""Lines of text, no table."""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [name for name in TABLES if name not in WRAPPED_BY_THE_TERMINAL])
def test_nothing_is_wider_than_the_terminal_and_nothing_is_cut(
    name: str, width: int, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = drawn(TABLES[name], db, width, "utf-8", monkeypatch)
    assert [line for line in found.splitlines() if cell_len(line) > width] == []
    assert "…" not in found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["ls", "score", "eval", "eval --dry-run", "compare"])
def test_what_tells_rows_apart_is_whole(
    name: str, width: int, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 80 columns the workflow was missing, at 60 the answer."""
    found = drawn(TABLES[name], db, width, "utf-8", monkeypatch)
    joined = "".join(found.split())
    if name in ("ls", "score"):
        for place in range(4):
            run = run_of(place)
            assert run.id[:12] in joined
            assert run.workflow in joined
            assert "".join(f"{run.question.text}→{run.answer}".split()) in joined
    else:
        assert ARMS[0] in joined
        assert ARMS[1][:14] in joined


def test_columns_that_are_left_out_are_told(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = drawn(TABLES["ls"], db, 60, "utf-8", monkeypatch)
    told = " ".join(found.split("left out at 60 columns:")[1].split())
    assert told.startswith("started, status, steps, tokens; --json has them")
    assert "left out" not in drawn(TABLES["ls"], db, 120, "utf-8", monkeypatch)
