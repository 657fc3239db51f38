"""`hopscope import`, and the other commands on what it stored, with the embedded reader."""

import json
from pathlib import Path

import pytest

from hopscope.runtime.corpora import hopland
from hopscope.store.store import Store
from tests.cli.experiment_example import call


def transcripts(path: Path, count: int = 1) -> Path:
    """Runs of an agent that searched for the two passages of a question in turn, after one that
    does not help."""
    corpus = {passage.id: passage for passage in hopland.corpus()}
    other = next(iter(corpus.values()))
    asked = [q for q in hopland.questions("dev") if q.kind == "chain" and q.hops == 2][:count]
    lines = []
    for each in asked:
        messages: list[dict[str, object]] = [{"role": "user", "content": each.question.text}]
        for place, passage in enumerate((other, *(corpus[id] for id in each.gold_passages))):
            function = {"name": "search", "arguments": json.dumps({"query": passage.title})}
            call = {"id": str(place), "type": "function", "function": function}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            found = [{"id": passage.id, "title": passage.title, "text": passage.text}]
            content = json.dumps(found)
            messages.append({"role": "tool", "tool_call_id": str(place), "content": content})
        messages.append({"role": "assistant", "content": each.question.answers[0]})
        lines.append(json.dumps({"messages": messages, "answers": each.question.answers}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_credit_on_imported_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The search that brought nothing of use earns nothing, those that brought both hops do; by
    every rule and meter, over steps and passages."""
    db = str(tmp_path / "runs.db")
    file = str(transcripts(tmp_path / "agent.jsonl"))
    code, out, _ = call(capsys, "import", file, "--db", db)
    assert code == 0
    assert out.startswith("1 run with 3 retrievals read (messages): 1 new in the experiment agent")
    measured = ["--reader", "tiny", "--samples", "3", "--db", db]
    rules = ["trajectory", "leave_one_out", "solo", "shapley"]
    meters = ["seper", "grogu", "semantic_entropy"]
    named = [*(f"--rule={rule}" for rule in rules), *(f"--meter={meter}" for meter in meters)]
    code, out, _ = call(capsys, "credit", "agent", *measured, *named, "-o", "grogu.score=entropy")
    assert code == 0
    code, out, _ = call(capsys, "credit", "agent", *measured, "--over", "passages")
    assert code == 0
    with Store.open(db) as store:
        assert store.experiments.progress("agent").ok == 1
        for id in store.ids():
            credits = [credit for credit in store.credits(id) if credit.passage is None]
            assert {credit.rule for credit in credits} >= {*rules, "total", "level"}
            assert {credit.meter for credit in credits} >= set(meters)
            assert all(credit.measurement.value is not None for credit in credits)
            shapley = {
                credit.step: credit.measurement.value or 0.0
                for credit in credits
                if (credit.rule, credit.meter) == ("shapley", "seper")
            }
            assert abs(shapley[1]) < 0.1
            assert shapley[3] + shapley[5] > 0.5
    code, out, _ = call(capsys, "compare", "agent", "--db", db)
    assert code == 0
    assert "messages" in out
    assert "seconds of messages: the imported record tells no times" in out
    code, out, _ = call(capsys, "show", "last", "--json", "--db", db)
    told = json.loads(out)
    assert {told["total"]["seconds"], *(step["seconds"] for step in told["steps"])} == {None}
    code, out, _ = call(capsys, "show", "last", "--db", db)
    assert (code, "0.00 s" in out.partition("measured with")[0]) == (0, False), out
    code, out, _ = call(capsys, "erag", "agent", "--reader", "tiny", "--db", db)
    assert code == 0
    code, _, err = call(capsys, "credit", "agent", "--mode", "replay", *measured)
    assert code == 2
    assert "the record of this run names no corpus" in err
    fit = ["budget", "fit", "--from", "agent", "--budget", "tokens=800", "--db", db]
    code, _, err = call(capsys, *fit, "--out", str(tmp_path / "policy.json"))
    assert code == 2
    assert "agent holds imported runs" in err


def test_what_could_not_be_read_ends_in_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = str(tmp_path / "runs.db")
    path = transcripts(tmp_path / "agent.jsonl")
    path.write_text(path.read_text() + '{"messages": 3}\n', encoding="utf-8")
    code, out, err = call(capsys, "import", str(path), "--db", db)
    assert code == 1
    assert "1 item could not be read" in out
    assert "not imported: agent.jsonl, line 2: 'messages' must be a list of objects" in err
    code, out, _ = call(capsys, "import", str(path), "--db", db, "--json")
    assert code == 1
    told = json.loads(out)
    assert (told["stored"], told["known"], told["unread"]) == (0, 1, 1)
    assert told["problems"][0]["where"] == "agent.jsonl, line 2"
    code, _, err = call(capsys, "import", str(path), "--format", "csv", "--db", db)
    assert code == 2
    assert "no 'csv' among formats: choose from flashrag, messages" in err


def test_an_import_tells_what_matched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, gold = transcripts(tmp_path / "agent.jsonl"), tmp_path / "gold.jsonl"
    gold.write_text('{"question": "Why?", "answers": ["so"]}')
    asked = ("import", str(path), "--gold", str(gold), "--db", str(tmp_path / "runs.db"))
    code, out, err = call(capsys, *asked, "--format", "messages:tools=serch")
    assert code == 0
    assert "1 of them have right answers, 0 from gold.jsonl" in out
    assert "gold.jsonl has right answers to none of the questions: it has 'why?', say" in err
    assert (
        "tools=serch: nothing calls a tool of that name; other tools that are called: search" in err
    )
