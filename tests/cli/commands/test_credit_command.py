"""`hopscope credit` on stored runs, with the embedded world and reader. What the reader says is not
looked at, only what must hold whatever it says."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hopscope.api.appraiser import Appraiser
from hopscope.api.views.run_table import replies_cut, show_run
from hopscope.cli.main import main
from hopscope.runtime.types import Credit, Measurement, Provenance, Run
from hopscope.store.experiments.records import Arm, DatasetEntry, Experiment
from hopscope.store.store import Store
from tests.fakes import run_of
from tests.models import tiny_llama


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command."""
    code = 0
    try:
        main(list(arguments))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    return code, *capsys.readouterr()


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code, out, err = call(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a run of the demo's question, IRCoT with two passages a hop."""
    database = tmp_path_factory.mktemp("credit") / "runs.db"
    with pytest.raises(SystemExit) as stop:
        main(["demo", "3", "--samples", "4", "--db", str(database), "--json"])
    assert stop.value.code == 0
    return database


@pytest.fixture
def database(stored: Path, tmp_path: Path) -> list[str]:
    """A copy, so that tests do not see each other's credits."""
    copy = tmp_path / "runs.db"
    with closing(sqlite3.connect(stored)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return ["--db", str(copy)]


QUICK = ["--samples", "4", "--meter", "seper"]


def of(found: Any, rule: str) -> dict[tuple[int | None, str | None], float]:
    return {(c["step"], c["passage"]): c["value"] for c in found["credits"] if c["rule"] == rule}


def plan(store: Store, name: str, runs: Sequence[Run]) -> None:
    """An experiment of the runs' questions."""
    done = runs[0]
    store.experiments.add(
        Experiment(
            name=name,
            settings={},
            reader=done.reader,
            retriever=done.retriever,
            entailment="lexical",
            seed=0,
            fingerprint="f",
            created=done.started,
            arms=(Arm(label=done.workflow, workflow=done.workflow, settings={}),),
        ),
        [DatasetEntry(question=run.question) for run in runs],
    )


def experiment(store: Store, name: str, runs: Sequence[Run]) -> None:
    """An experiment that these runs answered, which are of different questions."""
    plan(store, name, runs)
    session = store.experiments.begin_session(name, owner="here", environment={})
    for run in runs:
        [claimed] = store.experiments.claim(session)
        assert store.experiments.complete(session, claimed, run)


def unfolded(text: str) -> str:
    """The text however its lines are folded."""
    return "".join(text.split())


def nearly(told: Any) -> Any:
    """Equal to the same up to the last digits, which depend on what was computed together."""
    match told:
        case dict():
            return {key: nearly(value) for key, value in told.items()}
        case list():
            return [nearly(value) for value in told]
        case float():
            return pytest.approx(told, abs=1e-4)
        case _:
            return told


def test_credit_with_the_run_s_own_settings_is_what_the_run_was_told(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    shown = ask(capsys, "show", *database)
    found = ask(capsys, "credit", "last", "--rule", "all", *QUICK, *database)
    assert found["run"] == shown["id"]
    assert found["appraisal"]["id"] == shown["appraisal"]["id"]
    assert found["appraisal"]["usage"]["calls"] == 0  # all values are stored
    for rule, name in (("shapley", "shapley"), ("trajectory", "delta")):
        told = {(s["index"], None): s["credit"]["seper"][name] for s in shown["steps"]}
        assert of(found, rule) == told
    again = ask(capsys, "show", *database)
    for step in again["steps"]:
        step["credit"]["seper"].pop("solo")  # the rule that the run was not measured with
    assert again["steps"] == nearly(shown["steps"])
    repeated = ask(capsys, "credit", "last", "--rule", "all", "--again", *QUICK, *database)
    assert repeated["appraisal"]["usage"]["calls"] > 0
    assert nearly(repeated["credits"]) == nearly(found["credits"])
    last = ask(capsys, "show", *database)
    before, after = (s["appraisal"]["usage"]["calls"] for s in (shown, last))
    assert after == before + repeated["appraisal"]["usage"]["calls"]
    assert again["appraisal"]["others"] == []


def test_passages_share_what_their_step_is_worth(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    shown = ask(capsys, "show", *database)
    found = ask(capsys, "credit", shown["id"][:7], "--over", "passages", *QUICK, *database)
    worth, shares = of(found, "leave_one_out"), of(found, "shapley")
    brought = {step for step, passage in worth if passage is None}
    assert brought
    for step in brought:
        inside = [value for (at, passage), value in shares.items() if at == step and passage]
        assert sum(inside) == pytest.approx(worth[step, None], abs=1e-12)
        assert worth[step, None] == shown["steps"][step]["credit"]["seper"]["leave_one_out"]
    assert all(c["title"] for c in found["credits"] if c["passage"])
    again = ask(capsys, "show", *database)
    seen = {
        (step["index"], passage["id"]): passage["credit"]["seper"]["shapley"]
        for step in again["steps"]
        for passage in step["passages"]
        if passage["credit"]
    }
    assert seen == shares
    assert again["total"] == shown["total"]


def test_other_settings_are_kept_beside_and_the_whole_run_measured_last_is_shown(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    shown = ask(capsys, "show", *database)
    random = ask(capsys, "credit", "--counterfactual", "random", *QUICK, *database)
    [before] = ask(capsys, "ls", *database)
    assert before["seper_delta"] == of(random, "total")[None, None]
    latest = ask(capsys, "show", *database)
    assert latest["appraisal"]["id"] == random["appraisal"]["id"]
    assert latest["appraisal"]["settings"]["counterfactual"] == "random"
    assert latest["appraisal"]["others"] == [shown["appraisal"]["id"]]
    assert latest["total"]["seper"]["delta"] == before["seper_delta"]
    first = ask(capsys, "show", "--appraisal", shown["appraisal"]["id"][:6], *database)
    assert first["steps"] == shown["steps"]
    options = ["-o", "seper.weight=uniform", "--over", "passages", "--rule", "leave-one-out"]
    ask(capsys, "credit", *options, *QUICK, *database)
    assert ask(capsys, "show", *database)["appraisal"]["id"] == random["appraisal"]["id"]
    code, _, err = call(capsys, "show", "--appraisal", "zz", *database)
    assert (code, "'zz' does not name one" in err) == (2, True)


def test_random_passages_are_the_same_for_the_same_seed(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    asked = ["credit", "--counterfactual", "random", "--rule", "solo", *QUICK, *database]
    one, same = (ask(capsys, *asked, "--seed", "5") for _ in range(2))
    assert one["credits"] == same["credits"]
    assert one["appraisal"]["settings"]["corpus"].startswith("bm25:hopland@")
    assert one["appraisal"]["seed"] == 5
    assert "counterfactual=random(seed=5)" in one["credits"][-1]["estimator"]


def test_options_of_meters_reach_them_by_run_and_by_credit(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    option = ["-o", "seper.weight=uniform"]
    question = ["Where was Rosis Wallo born?", "--gold", "Zana", "-w", "naive", "--samples", "4"]
    run = ask(capsys, "run", *question, *option, *database)
    assert run["appraisal"]["settings"]["seper.weight"] == "uniform"
    found = ask(capsys, "credit", *option, "-o", "shapley.permutations=8", "--samples", "4",
                *database)  # fmt: skip
    estimators = {c["meter"]: c["estimator"] for c in found["credits"] if c["rule"] == "shapley"}
    assert "weight=uniform" in estimators["seper"]
    assert "weight=uniform" in estimators["seper_hard"]
    assert found["appraisal"]["settings"]["shapley.permutations"] == 8
    delta = of({"credits": [c for c in found["credits"] if c["meter"] == "seper"]}, "trajectory")
    assert delta == {(s["index"], None): s["credit"]["seper"]["delta"] for s in run["steps"]}


def test_replay_runs_the_workflow_again_and_says_so(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    shown = ask(capsys, "show", *database)
    asked = ["credit", "--mode", "replay", "--rule", "leave-one-out", *QUICK, *database, "--json"]
    code, out, err = call(capsys, *asked)
    assert code == 0, err
    assert "runs ircot again" in err
    found = json.loads(out)
    assert found["appraisal"]["settings"]["mode"] == "replay"
    whole = [c for c in found["credits"] if c["rule"] == "level" and c["step"] is not None]
    assert whole[-1]["value"] == shown["steps"][-1]["credit"]["seper"]["value"]
    assert {c["step"] for c in found["credits"] if c["rule"] == "leave_one_out"} == {
        step["index"] for step in shown["steps"]
    }


def test_replay_needs_the_reader_of_the_run(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    model = tiny_llama(tmp_path / "model", max_position_embeddings=1024)
    code, _, err = call(capsys, "credit", "--mode", "replay", "--reader", f"hf:{model}", *database)
    assert (code, "the run used the reader" in err, "own reader (--reader)" in err) == (
        2, True, True,
    )  # fmt: skip


def test_another_reader_may_measure_what_one_has_read_and_it_is_said(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    model = tiny_llama(tmp_path / "model", max_position_embeddings=4096)
    with Store.open(database[1]) as store:
        done = store.latest()
        copies = [
            done.model_copy(
                update={
                    "id": str(i) * 32,
                    "reader": reader,
                    "question": done.question.model_copy(update={"id": str(i)}),
                }
            )
            for i, reader in enumerate((done.reader, done.reader, ""))
        ]
        experiment(store, "runs", copies)
    asked = ["credit", "runs", "--reader", f"hf:{model}", "--each", "--rule", "trajectory"]
    code, out, err = call(capsys, *asked, "--meter", "gold_logprob", *database)
    assert code == 0, err
    with Store.open(database[1]) as store:
        measured = store.credits(copies[0].id)[-1].provenance.reader
    remark = f"measured by the proxy {measured}; the reader that ran is {done.reader}"
    unknown = f"measured by {measured}; the reader that ran is unknown"
    mixed = (
        f"measured by {measured}: a proxy for {done.reader} in 2 runs, "
        "the reader of 1 run is unknown"
    )
    assert unfolded(err).count(unfolded(remark)) == 1
    for each in (remark, unknown, mixed):
        assert unfolded(each) in unfolded(out)
    for run, told, proxy in ((copies[0], remark, True), (copies[2], unknown, None)):
        _, out, _ = call(capsys, "show", run.id, *database)
        assert unfolded(told) in unfolded(out)
        assert ask(capsys, "show", run.id, *database)["appraisal"]["proxy"] is proxy
    again = ask(capsys, "credit", copies[0].id, *asked[2:], "--meter", "gold_logprob", *database)
    assert again["appraisal"]["proxy"] is True
    _, out, _ = call(capsys, "compare", "runs", "--table", "credit_by_step", *database)
    assert unfolded(f"runs: {mixed}") in unfolded(out)


def test_grogu_says_why_a_rule_is_missing(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    asked = ["credit", "--rule", "shapley", "--meter", "grogu", *database]
    code, _, err = call(capsys, *asked)
    assert code == 0, err
    assert "no grogu credit by shapley" in err
    found = ask(capsys, *asked, "-o", "grogu.score=entropy")
    assert of(found, "shapley")


def test_the_table_names_steps_and_passages(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    code, out, err = call(capsys, "credit", "--over", "passages", *QUICK, *database)
    assert code == 0, err
    with Store.open(database[1]) as store:
        passage = store.latest().steps[0].evidence[0]
    assert passage.title in out
    assert passage.key in out
    assert "leave-one-out" in out
    assert "tokens" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rule", "shaply"], "no 'shaply' among rules: choose from leave_one_out"),
        (["--meter", "sepper"], "no 'sepper' among meters: choose from"),
        (["-o", "seper.wait=1"], "unknown option 'wait'"),
        (["-o", "seper.weight=heavy"], "option weight=heavy"),
        (["-o", "weight=uniform"], "'weight' is of no meter or rule chosen"),
        (["-o", "seper.kind=hard"], "goes with the meter's name: seper_hard"),
        (["-o", "shapley.permutations=2"], "give 4 or more"),
        (["-o", "seper.temperature=-1"], "temperature"),
        (["--counterfactual", "none"], "none"),
        (["--counterfactual", "random", "--corpus", "/nowhere"], "no index at /nowhere"),
    ],
)
def test_wrong_use_is_told(
    capsys: pytest.CaptureFixture[str], database: list[str], arguments: list[str], said: str
) -> None:
    code, out, err = call(capsys, "credit", *arguments, *database)
    assert (code, out) == (2, ""), err
    assert said in " ".join(err.split())


@pytest.mark.parametrize("asked", [["--counterfactual", "random"], ["--mode", "replay"]])
def test_another_corpus_than_the_run_s_is_refused(
    capsys: pytest.CaptureFixture[str], database: list[str], asked: list[str]
) -> None:
    with closing(sqlite3.connect(database[1])) as connection:
        connection.execute("UPDATE runs SET retriever = 'bm25:news@1'")
        connection.commit()
    code, _, err = call(capsys, "credit", *asked, *database)
    assert (code, "the run searched bm25:news@1, but the corpus hopland (--corpus) is" in err) == (
        2,
        True,
    )


def test_a_run_that_retrieved_nothing_has_nothing_to_share_among_passages(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    asked = ["run", "Where was Rosis Wallo born?", "--gold", "Zana", "-w", "closed_book"]
    ask(capsys, *asked, "--samples", "2", *database)
    code, out, err = call(capsys, "credit", "--over", "passages", "--json", *QUICK, *database)
    assert (code, json.loads(out)["credits"]) == (0, [])
    assert "no credits: no step retrieved" in err


def second(capsys: pytest.CaptureFixture[str], database: list[str]) -> Any:
    """Another run beside the first."""
    question = ["Where was Rosis Wallo born?", "--gold", "Zana", "-w", "naive", "--samples", "4"]
    return ask(capsys, "run", *question, *database)


def test_several_runs_are_credited_one_line_each(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    runs = [ask(capsys, "show", *database)["id"], second(capsys, database)["id"]]
    asked = ["credit", runs[0], "last", runs[1], "--rule", "solo", *QUICK, *database, "--json"]
    code, out, err = call(capsys, *asked)
    assert code == 0, err
    assert [json.loads(line)["run"] for line in out.splitlines()] == runs


def test_a_run_that_cannot_be_measured_does_not_cost_the_others(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    first, other = ask(capsys, "show", *database)["id"], second(capsys, database)["id"]
    with closing(sqlite3.connect(database[1])) as connection:
        connection.execute("UPDATE runs SET retriever = 'bm25:news@1' WHERE id = ?", [first])
        connection.commit()
    asked = ["--counterfactual", "random", "--rule", "solo", *QUICK, *database, "--json"]
    code, out, err = call(capsys, "credit", first, other, *asked)
    assert code == 1
    assert json.loads(out)["run"] == other
    assert f"run {first[:12]} is not measured: the run searched bm25:news@1" in " ".join(
        err.split()
    )


def test_an_experiment_stands_for_its_runs_and_what_was_measured_is_not_measured_again(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    with Store.open(database[1]) as store:
        done = store.latest()
        plan(store, "birthplaces", [done])
        code, _, err = call(capsys, "credit", "birthplaces", *QUICK, *database)
        assert (code, "birthplaces has answered no question yet" in err) == (2, True)
        session = store.experiments.begin_session("birthplaces", owner="here", environment={})
        [claimed] = store.experiments.claim(session)
        copied = done.model_copy(update={"id": "0" * 32})
        assert store.experiments.complete(session, claimed, copied)
    asked = ["credit", "birthplaces", "--rule", "solo", *QUICK, *database]
    found = ask(capsys, *asked)
    assert found["run"] == copied.id

    code, out, err = call(capsys, *asked, "--json")
    assert (code, json.loads(out)["appraisal"]) == (0, found["appraisal"])
    assert sorted(json.loads(out)["credits"], key=str) == sorted(found["credits"], key=str)
    assert "1 of 1 run already has these credits" in err
    for other in (["--rule", "trajectory"], ["--seed", "9"], ["--over", "passages"], ["--again"]):
        code, out, err = call(capsys, *asked, *other, "--json")
        assert (code, "these credits, which" in err) == (0, False), other
        assert json.loads(out)["appraisal"]["measured"] > found["appraisal"]["measured"]
    code, out, err = call(capsys, *asked, "--over", "passages", "--json")
    assert "1 of 1 run already has these credits" in err
    assert any(c["passage"] for c in json.loads(out)["credits"])


def test_what_was_not_shown_is_stored_and_told(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    asked = ["credit", "-o", "seper.context_words=6", *QUICK, *database]
    code, out, err = call(capsys, *asked)
    assert code == 0, err
    assert "seper: the context was too long, so of these not all was shown:" in " ".join(
        out.split()
    )
    shown = ask(capsys, "show", *database)
    assert shown["appraisal"]["settings"]["seper.context_words"] == 6
    assert set(shown["total"]["seper"]["dropped"]) <= {
        passage["id"] for step in shown["steps"] for passage in step["passages"]
    }
    assert shown["total"]["seper"]["dropped"]
    second = shown["steps"][2]["credit"]["seper"]
    assert second["delta"] is None
    assert "the reader saw nothing of it" in second["reason"]
    _, out, _ = call(capsys, "show", *database)
    assert "the context was too long" in out


def test_semantic_entropy_can_be_asked_for(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    asked = ["credit", "--meter", "semantic-entropy", "-o", "semantic_entropy.entropy=discrete"]
    found = ask(capsys, *asked, "--samples", "4", *database)
    assert {c["meter"] for c in found["credits"]} == {"semantic_entropy"}
    assert all("entropy=discrete" in c["estimator"] for c in found["credits"] if c["n"])
    shares = of(found, "shapley").values()
    assert sum(shares) == pytest.approx(of(found, "total")[None, None], abs=1e-12)


def test_control_c_keeps_the_credits_there_were(
    capsys: pytest.CaptureFixture[str], database: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = ask(capsys, "show", *database)

    def stopped(self: Appraiser, run: object, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Appraiser, "appraise", stopped)
    code, out, err = call(capsys, "credit", *QUICK, *database)
    assert (code, out, "stopped" in err) == (130, "", True)
    assert ask(capsys, "show", *database) == shown


def test_an_unknown_run_is_told(capsys: pytest.CaptureFixture[str], database: list[str]) -> None:
    code, _, err = call(capsys, "credit", "nothing", *database)
    assert code == 2
    said = " ".join(err.split())
    assert "no run or experiment 'nothing' in" in said
    assert "`hopscope ls` lists the runs; experiments: none" in said


def test_replies_that_were_cut_off_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = "with 2 of 10 replies cut off"
    level = Measurement(value=0.5, n=10, estimator=f"seper-soft() {told}", low=0.1, high=0.9)
    run = run_of("x", answers=["g"])
    values = {("level", 0): level, ("trajectory", 0): level.model_copy(update={"estimator": "t"})}
    credits = [
        Credit(
            run_id=run.id,
            step=step,
            rule=rule,
            meter="seper",
            measurement=measurement,
            provenance=Provenance(reader="r"),
        )
        for (rule, step), measurement in values.items()
    ]
    said = "seper: 2 of 10 replies were cut off: raise -o seper.max_tokens to know what they mean"
    show_run(run, credits, json=False)
    assert said in " ".join(capsys.readouterr().out.split())
    show_run(run, credits, json=True)
    [step] = json.loads(capsys.readouterr().out)["steps"]
    assert step["credit"]["seper"]["cut_off"] == "2 of 10 replies"
    assert said.replace("seper:", "seper_hard:", 1) == replies_cut("seper_hard", "2 of 10 replies")


def test_a_credit_budget_tells_its_calls_beforehand_and_keeps_to_them(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    chosen = ("--rule", "leave-one-out", "--rule", "shapley", *QUICK)
    budget = ("--credit-budget", "calls=6")
    planned = ask(capsys, "credit", "last", *chosen, *budget, "--dry-run", *database)
    [cost] = planned
    assert cost["calls"] == min(6, cost["unlimited"])
    found = ask(capsys, "credit", "last", *chosen, *budget, *database)
    assert all(c["n"] <= 4 for c in found["credits"])
    assert {c["rule"] for c in found["credits"]} >= {"leave_one_out", "shapley", "total"}
    assert found["appraisal"]["settings"]["credit_budget"] == 6
    code, out, _ = call(capsys, "credit", "last", *chosen, *budget, "--dry-run", *database)
    assert code == 0
    assert f"{cost['calls']} replies" in out
    code, out, _ = call(capsys, "credit", "last", *chosen, *budget, "--again", *database)
    assert f"{cost['calls']} replies of " in out
    assert "the budget of each meter is 6" in out


@pytest.mark.parametrize("text", ["40", "calls=many", "tokens=4", "calls="])
def test_a_credit_budget_of_another_form_is_refused(
    capsys: pytest.CaptureFixture[str], database: list[str], text: str
) -> None:
    code, _, err = call(capsys, "credit", "last", "--credit-budget", text, *database)
    assert code == 2
    assert "calls=40" in err
