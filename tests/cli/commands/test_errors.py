"""`hopscope score`, `errors` and `erag` on real runs of the embedded world, kept in SQLite.

What the embedded reader answers is not known here: expectations are worked out from the runs.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from hopscope.api import parts
from hopscope.cli.main import main
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.texts.answers import contains, exact_match
from hopscope.runtime.types import Question, Run
from hopscope.store.store import Store
from hopscope.tracing.reports.shown import shown_passages
from tests.fakes import ScriptedReader, reply

WORKFLOWS = ["closed_book", "naive"]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command."""
    try:
        main(list(arguments))
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, err = call(capsys, *arguments, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """Two questions by two workflows; and one without a gold by one of them."""
    deps = Deps(reader=parts.reader("tiny"), retriever=parts.corpus("hopland"))
    asked = [row.question for row in hopland.questions("dev")[:2]]
    made = [run(parts.workflow(w, {}), q, deps) for q in asked for w in WORKFLOWS]
    # The first question's gold is what naive RAG answered, so that something is right.
    gold = Question(text=asked[0].text, answers=(made[1].answer or "x",))
    made[:2] = [found.model_copy(update={"question": gold}) for found in made[:2]]
    unknown = Question(text="What is not known?")
    return [*made, run(parts.workflow("naive", {}), unknown, deps)]


@pytest.fixture(scope="module")
def database(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("runs") / "runs.db"
    with Store.open(file) as store:
        for found in runs:
            store.save(found)
    return ["--db", str(file)]


def test_score_prints_each_run_and_averages_what_could_be_measured(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run]
) -> None:
    found = ask(capsys, "score", *database)
    assert list(found["averages"]) == ["exact_match", "f1", "contains"]
    values = {row["id"]: row["scores"]["exact_match"]["value"] for row in found["runs"]}
    right = [exact_match(r.answer or "", r.question.answers) for r in runs[:4]]
    assert [values[r.id] for r in runs] == [*right, None]
    mean = found["averages"]["exact_match"]
    assert mean["mean"] == pytest.approx(sum(right) / 4)
    assert (mean["measured"], mean["total"]) == (4, 5)
    assert mean["low"] <= mean["mean"] <= mean["high"]
    unknown = next(row for row in found["runs"] if row["id"] == runs[4].id)
    assert unknown["scores"]["f1"]["reason"] == "no gold answer"
    assert "normaliser=squad" in unknown["scores"]["f1"]["estimator"]

    code, out, err = call(capsys, "score", runs[1].id[:12], "-m", "f1:spaced", *database)
    assert code == 0
    assert "f1:spaced" in out
    assert "(1 of 1 measured)" in out
    assert "not measured: no gold answer" in call(capsys, "score", *database)[2]
    assert err == ""


def test_metrics_that_ask_a_reader_tell_what_they_took(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run]
) -> None:
    """SePer's Table 7: direct judgement asks once, by reduction twice, where there is evidence."""
    asked = ["score", "-m", "judge_direct", "-m", "judge_reduction", "-m", "f1", *database]
    found = ask(capsys, *asked)
    assert list(found["costs"]) == ["judge_direct", "judge_reduction"]
    direct, reduction = found["costs"].values()
    assert direct["answers"] == reduction["answers"] == len(runs)
    assert 0 < direct["usage"]["calls"] <= len(runs)
    assert direct["usage"]["calls"] < reduction["usage"]["calls"]
    assert direct["usage"]["input_tokens"] > 100
    assert direct["seconds"] > 0
    out = call(capsys, *asked)[1]
    assert f"per answer: {direct['usage']['calls'] / len(runs):.1f} calls, " in out
    assert out.count("per answer:") == 2


def test_errors_are_told_for_runs_steps_and_systems(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run]
) -> None:
    found = ask(capsys, "errors", "--max-words", "100", *database)
    by_id = {row["id"]: row["errors"] for row in found["runs"]}
    for one in runs[:4]:
        texts = [t for p in shown_passages(one).values() for t in (p.title, p.text)]
        whole = by_id[one.id][0]
        assert whole["step"] is None
        assert whole["errors"]["retriever"] is not any(
            contains(text, gold) for gold in one.question.answers for text in texts
        )
        assert whole["errors"]["hallucination"] is not any(
            contains(text, one.answer or "") for text in texts
        )
        right = exact_match(one.answer or "", one.question.answers) == 1
        assert whole["errors"]["correct"] is right
    # Closed-book shows no document: both errors, whatever the answer.
    [_, step] = by_id[runs[0].id]
    assert (step["errors"]["retriever"], step["errors"]["hallucination"]) == (True, True)
    # The retrieval of naive RAG asks no model; its answer step showed what the run showed.
    whole, retrieval, answer = by_id[runs[1].id]
    assert retrieval["errors"] is None
    assert answer["errors"] == whole["errors"]
    assert by_id[runs[4].id][0]["reason"] == "no gold answer"

    systems = {system["system"]: system for system in found["systems"]}
    assert (systems["naive"]["measured"], systems["naive"]["total"]) == (2, 3)
    assert systems["closed_book"]["shares"]["retriever"]["value"] == 1
    assert systems["closed_book"]["shares"]["retriever"]["low"] == pytest.approx(0.025**0.5)
    right = found["comparison"]["right"]
    assert right["questions"] == 2
    naive, closed = right["systems"].index("naive"), right["systems"].index("closed_book")
    wrong = [r for r in (runs[0], runs[2]) if not exact_match(r.answer or "", r.question.answers)]
    won = right["rwr"][naive][closed]
    assert won["n"] == len(wrong)
    assert right["rwr"][naive][naive] is None
    assert right["oracle"]["value"] >= max(a["value"] for a in right["accuracy"])


def test_questions_with_long_answers_are_left_out_and_counted(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run], tmp_path: Path
) -> None:
    long = runs[1].model_copy(update={"answer": "one two three four five six"})
    with Store.open(tmp_path / "long.db") as store:
        store.save(runs[0])
        store.save(long)
    other = ["--db", str(tmp_path / "long.db")]
    found = ask(capsys, "errors", *other)
    assert found["too_long"] == 1
    assert [system["measured"] for system in found["systems"]] == [0, 0]
    assert found["comparison"]["right"]["questions"] == 1
    assert found["comparison"]["questions"] == 0
    assert "1 question left out" in call(capsys, "errors", *other)[2]


def test_the_retrievers_of_a_pool_are_compared(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    """A document that was summed up is its summary. The reader is scripted: four replies."""
    said = ["Melma", "They are based in Yalal.", "Yalal", "Yalal"]
    reader = ScriptedReader([[reply(text)] for text in said])
    deps = Deps(reader=reader, retriever=parts.corpus("hopland"))
    pool = {"pool": "Wiki@3,Wiki@1@CP,ReFree", "similarities": "em=1"}
    question = Question(text=hopland.questions("dev")[0].question.text, answers=("Yalal",))
    one = run(parts.workflow("eor", pool), question, deps)
    file = tmp_path / "eor.db"
    with Store.open(file) as store:
        store.save(one)
    found = ask(capsys, "errors", "--by", "pool", "--db", str(file))
    rows = {row["system"]: row for row in found["runs"]}
    assert {name: row["answer"] for name, row in rows.items()} == {
        "Wiki@3": "Melma",
        "Wiki@1@CP": "Yalal",
        "ReFree": "Yalal",
    }
    wiki, summed, free = (row["errors"][0]["errors"] for row in rows.values())
    texts = [t for h in one.steps[0].ranked[:3] for t in (h.passage.title, h.passage.text)]
    assert wiki["retriever"] is not any(contains(text, "Yalal") for text in texts)
    assert not any(summed[kind] for kind in ("retriever", "hallucination", "extraction"))
    assert free["lucky_guess"]
    assert found["comparison"]["right"]["mrlr"][0]["value"] == 1
    assert found["comparison"]["right"]["oracle"]["value"] == 1

    code, _, err = call(capsys, "errors", "--by", "pool", *database)
    assert code == 2
    assert "no run of EoR with a vote" in err


def test_errors_for_people(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run]
) -> None:
    code, out, _ = call(capsys, "errors", runs[0].id, *database)
    assert code == 0
    assert "whole run: retriever, hallucination" in out
    code, out, _ = call(capsys, "errors", *database)
    assert code == 0
    for said in ("lucky guess", "relative win ratios over 2 questions", "any of them right"):
        assert said in out
    assert "\x1b" not in out


def test_erag_labels_what_each_run_showed(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run]
) -> None:
    found = ask(
        capsys, "erag", runs[1].id, runs[0].id, "--cutoff", "1", "--max-tokens", "8", *database
    )
    naive, closed = found["runs"]
    step, whole = naive["rankings"]
    assert (step["step"], whole["step"]) == (0, None)
    assert step["passages"] == whole["passages"] == list(shown_passages(runs[1]))
    labels = [label["value"] for label in whole["labels"]]
    assert set(labels) <= {0, 1}
    assert whole["measures"]["P"]["value"] == pytest.approx(sum(labels) / len(labels))
    assert whole["measures"]["Hit@1"]["value"] == labels[0]
    [sole] = closed["rankings"]
    assert sole["measures"]["AP"]["value"] is None
    assert (found["averages"]["AP"]["measured"], found["averages"]["AP"]["total"]) == (1, 2)
    assert found["agreement"]["P"]["kendall"]["reason"] == "fewer than two pairs"
    code, out, _ = call(capsys, "erag", runs[0].id, *database)
    assert code == 0
    assert "all shown" in out


def test_metrics_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "list", "metrics", "--json")
    assert code == 0
    rows = {row["name"]: row for row in json.loads(out)}
    assert {"exact_match", "f1", "bleu", "judge_reduction"} <= set(rows)
    assert rows["f1"]["options"] == {"normaliser": "squad"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["score", "-m", "em"], 2, "choose from bertscore, bleu"),
        (["score", "-m", "f1:loose"], 2, "option normaliser=loose"),
        (["score", "-m", "rouge_l:x"], 2, "rouge_l takes nothing after its name"),
        (["score", "-m", "bertscore"], 2, "bertscore needs model: give bertscore:MODEL"),
        (["score", "-m", "bertscore:/nowhere"], 2, "/nowhere"),
        (["score", "nonsense"], 2, "no run or experiment 'nonsense'"),
        (["score", "-w", "flare"], 2, "no runs of workflow flare"),
        (["errors", "--threshold", "2"], 2, "threshold"),
        (["errors", "--by", "mood"], 2, "mood"),
        (["erag", "--cutoff", "0"], 2, "cutoff"),
    ],
)
def test_wrong_use_is_told_in_one_message(
    capsys: pytest.CaptureFixture[str],
    database: list[str],
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    got, out, err = call(capsys, *arguments, *database)
    assert (got, out) == (code, ""), err
    assert said in " ".join(err.split())
    assert "Traceback" not in err
