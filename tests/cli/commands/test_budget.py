"""`hopscope run --policy`, limits, and `hopscope budget`, through the front door."""

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from hopscope.cli.main import main
from hopscope.lab.budget import learning
from hopscope.runtime.types import Question, Run, StopReason
from hopscope.store.store import Store
from hopscope.tracing.learned.promise import Promise, Risk, RiskBound
from tests.tracing.policies.test_policies import value_file

ASK = "What is the employer of the mayor of Grand Nalmir?"


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command, in this process."""
    code = 0
    try:
        main(list(arguments))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    return code, *capsys.readouterr()


def test_limits_and_policies_are_kept_and_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = str(tmp_path / "runs.db")
    limits = ("--policy", "margin:1", "--max-retrievals", "1", "--max-calls", "9")
    code, out, _ = call(capsys, "run", ASK, *limits, "--samples", "2", "--db", db, "--json")
    assert code == 0
    report = json.loads(out)
    assert report["total"]["retrievals"] <= 1
    code, out, _ = call(capsys, "budget", "explain", "--db", db, "--json")
    assert code == 0
    first, *rest = json.loads(out)
    assert first["decision"]["policy"] == "margin:1"
    assert first["decision"]["retrieve"]
    assert 0 <= first["decision"]["signals"]["margin"] <= 1
    assert first["decision"]["usage"]["calls"] == 1
    if rest:  # what the reader says decides whether it asks again
        assert rest[0]["decision"]["policy"] == "limit:budget_retrievals"
        assert report["stop_reason"] == "budget_retrievals"
    code, out, _ = call(capsys, "budget", "explain", "--db", db)
    assert "after 0 retrievals: retrieve  (margin:1)" in out


@pytest.mark.parametrize(
    ("stop_reason", "told"),
    [("answer_marker", "met no limit"), ("budget_tokens", "met within a step")],
)
def test_a_run_without_decisions_says_why_there_are_none(
    stop_reason: StopReason, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who had given a limit that was never reached was told to give one."""
    done = Run(
        id="one",
        question=Question(text="Who?"),
        workflow="ircot",
        stop_reason=stop_reason,
        started=datetime(2026, 11, 21, tzinfo=UTC),
    )
    with Store.open(tmp_path / "runs.db") as store:
        store.save(done)
    code, out, err = call(capsys, "budget", "explain", "--db", str(tmp_path / "runs.db"))
    assert (code, out) == (0, f"one  ircot  ended by {stop_reason}\n")
    assert told in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--policy", "nonesuch"), "no 'nonesuch' among policies"),
        (("--policy", "fixed:x"), "fixed:x: option k=x"),
        (("--policy", "margin:2"), "margin:2: option threshold=2: give 1.0 or less"),
        (("--policy", "margin:-0.1"), "option threshold=-0.1: give 0.0 or more"),
        (("--policy", "flare:2"), "option threshold=2: give 1.0 or less"),
        (("--policy", "tasr:1.5"), "option threshold=1.5: give 1.0 or less"),
        (("--policy", "entropy:-1"), "option threshold=-1: give 0.0 or more"),
        (("--policy", "maxentropy:-1"), "option threshold=-1: give 0.0 or more"),
        (("--policy", "logprob:0.3"), "option threshold=0.3: give 0.0 or less"),
        (("--policy", "random:1.5"), "option p=1.5: give 1.0 or less"),
        (("--policy", "value"), "value needs file"),
        (("--policy", "value:nowhere.json"), "hopscope budget fit"),
        (("--policy", "tasr:0.5,calibration=no.json"), "fit --from EXPERIMENT --kind tasr"),
        (("--policy", "tasr:0.5,what=3"), "unknown option 'what'"),
        (("--prices", "nowhere.toml"), "or leave prices (--prices) out for the shipped table"),
        (("--max-calls", "-1"), "max-calls"),
    ],
)
def test_what_cannot_be_used_is_told_before_the_run(
    arguments: tuple[str, ...], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capsys, "run", ASK, *arguments, "--db", str(tmp_path / "r.db"))
    assert (code, out) == (2, "")
    assert told in err


def test_a_calibration_of_tasr_can_be_named(tmp_path: Path) -> None:
    """It was a thing that `fit` wrote and no command took."""
    from hopscope.api.spending import policy
    from hopscope.runtime.specs import Spec
    from hopscope.tracing.learned.calibration import Calibration

    file = tmp_path / "tasr.json"
    learned = Calibration(workflow="ircot", reader="tiny", scores=(0.0, 1.0), values=(0.1, 0.9))
    file.write_text(learned.model_dump_json())
    found = policy(Spec.parse(f"tasr:0.5,calibration={file}"), workflow="ircot", reader_name="tiny")
    assert found is not None
    assert found.name == "tasr:0.5 (calibrated)"


def test_money_needs_a_price() -> None:
    from hopscope.api.spending import Spending
    from hopscope.runtime.budget.ledger import Limits
    from hopscope.runtime.errors import UsageError

    spending = Spending(limits=Limits(cost=1.0))
    assert spending.ledger("hopland@1").limits.cost == 1.0
    with pytest.raises(UsageError, match="a limit in money needs the price of gpt"):
        spending.ledger("gpt")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("fit", "--from", "none", "--out", "p.json"), "--budget tokens=N"),
        (("fit", "--from", "none", "--out", "p.json", "--budget", "tokens=x"), "no number"),
        (("fit", "--from", "none", "--out", "p.json", "--budget", "tokens=nan"), "from 0 on"),
        (("fit", "--from", "none", "--out", "p.json", "--budget", "tokens=-5"), "from 0 on"),
        (("fit", "--from", "none", "--out", "no/p.json", "--budget", "tokens=9"), "no folder"),
        (("fit", "--from", "none", "--out", "p.json", "--budget", "tokens=9"), "no experiment"),
        (("fit", "--from", "e", "--from", "e", "--out", "p", "--budget", "tokens=9"), "e is named"),
        (
            ("fit", "--from", "e", "--adapt", "e", "--out", "p", "--budget", "tokens=9"),
            "e is named",
        ),
        (("fit", "--from", "none", "--out", "r.db", "--budget", "tokens=9"), "r.db is there al"),
        (("fit", "--from", "none", "--out", "p.json", "--guarantee", "loss<.1"), "give loss<="),
        (
            ("fit", "--from", "e", "--out", "p", "--guarantee", "loss<=.1", "--budget", "tokens=9"),
            "in place of --budget",
        ),
        (("fit", "--from", "none", "--out", "p.json", "--guarantee", "loss<=.1"), "no experiment"),
        (
            ("fit", "--from", "e", "--adapt", "f", "--out", "p", "--guarantee", "loss<=.1"),
            "no experiment",
        ),
        (("fit", "--from", "e", "--adapt", "f", "--out", "p", "--kind", "tasr"), "value and route"),
        (
            ("fit", "--from", "e", "--out", "p", "--kind", "classifier", "--budget", "tokens=9"),
            "--budget is for value and route",
        ),
        (
            ("fit", "--from", "e", "--adapt", "e", "--out", "p", "--budget", "tokens=9"),
            "e is named twice",
        ),
        (("check", "p.json", "e"), "value:FILE or route:FILE"),
        (("check", "route:p.json", "e"), "checked on outcomes"),
        (("check", "route:p.json", "--outcomes", "o"), "p.json cannot be read"),
        (("check", "value:p.json"), "give the experiment whose runs"),
        (("check", "value:p.json", "e"), "p.json cannot be read"),
        (
            ("fit", "--outcomes", "o", "--out", "p", "--guarantee", "loss<=.1", "--budget", "s=9"),
            "in place of --budget",
        ),
        (("frontier", "none"), "no experiment"),
        (("frontier", "none", "--plot", "r.db"), "r.db is there already: give --overwrite"),
        (("frontier", "none", "--plot", "r.db", "--overwrite"), "no experiment"),
        (("frontier", "none", "--plot", ".", "--overwrite"), ". is a folder: name a file"),
        (("frontier", "none", "--plot", "p" * 300), "cannot be written: File name too long"),
        (("frontier", "none", "--plot", "r.db/p.svg"), "cannot be written: Not a directory"),
        (("fit", "--out", "p.json"), "or --outcomes FILE"),
        (("fit", "--kind", "route", "--from", "e", "--out", "p.json"), "learned from --outcomes"),
        (("fit", "--outcomes", "o", "--from", "e", "--out", "p.json"), "either --from EXP or"),
        (("fit", "--outcomes", "o", "--out", "p.json"), "o cannot be read"),
        (("frontier", "--outcomes", "o"), "give the router to judge as --policy route:FILE"),
        (("frontier", "--outcomes", "o", "--policy", "route:p.json"), "--outcomes OUTCOMES"),
        (("frontier", "--outcomes", "o", "--policy", "route:p.json,price=5"), "leave out price"),
        (("check", "route:p.json,price=5", "--outcomes", "o"), "leave out price"),
        (
            ("allocate", "q", "--policy", "route:p.json,price=5", "--total", "9"),
            "leave out price",
        ),
        (("allocate", "q", "--policy", "p.json", "--total", "inf"), "finite numbers"),
        (("frontier", "e", "--outcomes", "o"), "give either an experiment or"),
        (("allocate", "q.jsonl", "--policy", "p.json", "--total", "9"), "cannot be read"),
    ],
)
def test_budget_commands_say_what_is_wrong(
    arguments: tuple[str, ...],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOPSCOPE_DB", str(tmp_path / "r.db"))
    Store.open(tmp_path / "r.db").close()
    code, out, err = call(capsys, "budget", *arguments)
    assert (code, out) == (2, "")
    assert told in err


def test_a_policy_is_learned_from_experiments_of_others_and_some_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workflows and readers teach a third, of which there are eight questions."""
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOPSCOPE_DB", str(tmp_path / "r.db"))
    monkeypatch.setattr(learning, "Fitting", partial(learning.Fitting, trees=10, prices=3))
    for name, *asked in (
        ("short", "hopland:test", "-w", "naive", "-w", "closed_book", "--limit", "20"),
        ("agent", "hopland:test", "-w", "search_agent", "--reader", "tiny:search", "--limit", "6"),
        ("few", "hopland:dev", "-w", "self_ask", "--limit", "8"),
    ):
        assert call(capsys, "eval", *asked, "--meter", "none", "--name", name)[0] == 0
    sources = ("--from", "short", "--from", "agent", "--adapt", "few")
    given = ("budget", "fit", *sources, "--budget", "tokens=400", "--out", "p.json")
    for arm, told in (
        ((), "which workflow of short: give -w with naive, closed_book"),
        (("-w", "nave"), "no workflow 'nave' of short: give -w with naive, closed_book"),
    ):
        code, _, err = call(capsys, *given, *arm)
        assert code == 2
        assert told in err
    code, out, err = call(capsys, *given, "-w", "naive")
    assert (code, out[:12]) == (0, "correctness ")
    assert "value policy of 34 questions written to p.json: use it with --policy value:p" in err
    file = json.loads(Path("p.json").read_text(encoding="utf-8"))
    with Store.open() as store:
        few = store.experiments.find("few")
    assert (file["workflow"], file["reader"]) == ("self_ask", few.reader)
    assert (file["learned"]["adapted_to"], file["learned"]["questions"]) == (8, 26)
    assert file["learned"]["tokens"] <= 400
    policy = ("--policy", "value:p.json", "--meter", "none")
    assert call(capsys, "run", ASK, "-w", "self_ask", *policy)[0] == 0
    assert "(value:" in call(capsys, "budget", "explain")[1]
    code, _, err = call(capsys, "run", ASK, "-w", "ircot", *policy)
    assert code == 2
    assert "learned for the workflow self_ask and does not fit ircot" in err
    assert "promises nothing" in call(capsys, "budget", "check", "value:p.json", "few")[2]
    Path("p.json").write_text(json.dumps(file | {"prompts": ["mine#ab12"]}))
    Path("q.jsonl").write_text(json.dumps({"question": ASK}))
    batch = ("q.jsonl", "--policy", "p.json", "-w", "self_ask", "--total", "999999")
    code, out, err = call(capsys, "budget", "allocate", *batch)
    assert (code, ASK in out) == (0, True)
    assert "learned from runs with the prompts mine#ab12, and these are with the prompts de" in err


def test_what_the_files_of_budget_commands_hold_is_told_before_a_model_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.jsonl").write_bytes(b"\x1f\x8b")
    code, _, err = call(capsys, "budget", "allocate", "q.jsonl", "--policy", "p", "--total", "9")
    assert (code, "q.jsonl cannot be read as questions: byte 1 is not UTF-8" in err) == (2, True)
    bound = RiskBound(risk=Risk.parse("loss<=.1"), found=0.0, upper=0.1)
    promise = Promise(
        kept=True,
        risks=(bound,),
        method="m",
        threshold=0.1,
        tried=1,
        calibrated=100,
        seed=0,
        cost=1.0,
        cost_always=2.0,
    )
    file = value_file(tmp_path, utility="taste", promise=promise)
    code, _, err = call(capsys, "budget", "check", f"value:{file}", "e")
    assert (code, "no run tells its utility taste" in err) == (2, True)


def test_a_router_is_learned_from_outcomes_and_judged_on_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One retrieval is right where the draft hedges; nulls and other fields do no harm."""
    pytest.importorskip("sklearn")
    rows = [
        {
            "question": f"Who founded town {n}?",
            "answers": ["Ina Dorn"],
            "dataset": "towns",
            "predictions": {"none": ["It is unknown", "Ina Dorn"][n % 2], "one": "Ina Dorn"},
            "accurate": None,
            "other": n,
        }
        for n in range(60)
    ]
    path, out = tmp_path / "outcomes.jsonl", tmp_path / "route.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ("budget", "fit", "--outcomes", str(path), "--out", str(out))
    code, told, err = call(capsys, *given, "--budget", "steps=.5", "--budget-per", "set")
    assert code == 0
    assert "accuracy" in told
    assert f"use it with --policy route:{out}" in err
    judged = ("budget", "frontier", "--outcomes", str(path), "--policy", f"route:{out}")
    code, told, _ = call(capsys, *judged, "--json")
    assert code == 0
    shipped = json.loads(told)["sets"][0]["shipped"]
    assert (shipped["accuracy"], shipped["cost"]) == (pytest.approx(1), pytest.approx(0.5))
    assert shipped["difference"] == pytest.approx(0.25), "half of the rows are right without"
    code, told, _ = call(capsys, *judged, "--at", "steps=.5")
    assert "towns" in told


def test_a_promise_of_a_router_is_made_checked_and_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On other questions confident drafts are wrong, and the check fails."""
    pytest.importorskip("sklearn")

    def write(name: str, wrong: bool, *, first: int = 0) -> str:
        rows = [
            {
                "question": f"Who founded town {n * 7919 % 900 + 100}?",
                "draft": ["It is unknown", "Ina Dorn"][n % 2],
                "accurate": {"none": n % 2 and not wrong, "one": 1},
            }
            for n in range(first, first + 200)
        ]
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    learned, others, out = write("a", False), write("b", True), str(tmp_path / "route.json")
    promise = ("--guarantee", "loss<=.05@.9", "--out", out)
    code, told, _ = call(capsys, "budget", "fit", "--outcomes", learned, *promise)
    assert code == 0
    assert told.startswith("promised: loss<=0.05@0.9")
    checked = ("budget", "check", f"route:{out}", "--outcomes")
    code, told, err = call(capsys, *checked, learned)
    assert code == 0
    assert told.startswith("kept: loss<=0.05@0.9 on 200 questions")
    assert "these are questions that the policy was learned from: check it on others" in err
    half = write("renamed", False, first=100)
    _, _, err = call(capsys, *checked, half)
    assert "100 of these 200 questions are among those that the policy was learned from" in err
    code, told, err = call(capsys, *checked, write("new", False, first=200))
    assert (code, "learned from" in err) == (0, False)
    code, told, _ = call(capsys, *checked, others, "--json")
    assert code == 1
    assert json.loads(told)["verdict"] == "broken"
    moved = ("fit", "--outcomes", learned, "--adapt", others, *promise, "--overwrite")
    code, told, _ = call(capsys, "budget", *moved)
    assert code == 0
    assert told.startswith("promised: loss<=0.05@0.9, by 100 questions"), "half of the others"
    assert "; 1 steps per question, where always retrieving takes 1 steps" in told
