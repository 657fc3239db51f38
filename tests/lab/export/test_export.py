"""Exports, read back by the tools they are for."""

import csv
import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from datasets import Dataset, List, Value
from pyarrow import parquet

from hopscope.lab.export import preferences, rewriting, rows, trec
from hopscope.lab.export.candidates import Candidates
from hopscope.lab.export.preferences import Candidate, Rewrites
from hopscope.lab.export.sheets import Form, sheet, write_lines
from hopscope.runtime.errors import CorpusError, UsageError
from hopscope.runtime.types import (
    Credit,
    Decision,
    Hit,
    Measurement,
    Provenance,
    Question,
    Run,
    RunError,
    Usage,
)
from hopscope.store.experiments.records import DatasetEntry, Item
from hopscope.tracing.erag import ranking
from tests.fakes import NOW, FunctionMeter, ScriptedReader, passage, reply, run_of, step

WHO = Question(text="Who?", answers=("gold", "or"), id="q1")


def a_run() -> Run:
    """Two retrievals; the second finds `b` again, and `c`, which no model is shown."""
    steps = (
        step(0, "ab", query="first", ranked=hits("ab"), evidence=(passage("a"), passage("b"))),
        step(1, "c", query='second, "it"', ranked=hits("bc"), shown=(), dangling=("c",)),
        step(2, kind="generate", output="gold", usage=Usage(input_tokens=9, calls=1)),
    )
    return Run(id="r1", question=WHO, workflow="w", options={"k": 2}, steps=steps, started=NOW)


def hits(keys: str) -> tuple[Hit, ...]:
    return tuple(Hit(passage=passage(key), score=1 / (i + 1)) for i, key in enumerate(keys))


def credit(
    step: int | None, value: float | None, *, rule: str = "shapley", **fields: object
) -> Credit:
    known = {"meter": "seper", "provenance": Provenance(reader="m"), **fields}
    measured = Measurement(value=value, reason="no sample" if value is None else None)
    return Credit.model_validate(
        {"run_id": "r1", "step": step, "rule": rule, "measurement": measured, **known}
    )


def item(**fields: object) -> Item:
    entry = DatasetEntry(question=WHO, kind="bridge", hops=2)
    known = {"entry": entry, "arm": "w:k=2", "workflow": "w", "position": 0, "status": "ok"}
    return Item.model_validate(known | fields)


def write(path: Path, form: Form) -> None:
    with sheet(path, rows.RUNS, form) as add:
        add(rows.run_row("exp", item(), a_run()))
        error = RunError(type="ReaderError", message="gone")
        add(rows.run_row("exp", item(status="failed", error=error), None))


def test_runs_as_csv(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "runs.csv", "csv")
    with (tmp_path / "deep" / "runs.csv").open(newline="") as file:
        one, failed = csv.DictReader(file)
    assert list(one) == list(rows.RUNS)
    assert (one["experiment"], one["system"], one["run_id"]) == ("exp", "w:k=2", "r1")
    assert json.loads(one["golds"]) == ["gold", "or"]
    assert json.loads(one["options"]) == {"k": 2}
    assert (one["retrievals"], one["input_tokens"], one["hops"]) == ("2", "9", "2")
    assert (failed["run_id"], failed["error"]) == ("", "ReaderError: gone")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["runs.csv"]


def test_runs_as_json_lines_and_parquet_hold_the_same(tmp_path: Path) -> None:
    write(tmp_path / "runs.jsonl", "jsonl")
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    write(tmp_path / "runs.parquet", "parquet")
    table = parquet.read_table(tmp_path / "runs.parquet").to_pylist()
    for row in table:
        row["options"] = row["options"] and json.loads(row["options"])
    assert table == lines
    assert lines[1]["seconds"] is None


def test_steps_and_credits_as_rows(tmp_path: Path) -> None:
    one, two, last = rows.step_rows(a_run())
    assert (one["query"], one["ranked"], one["shown"]) == ("first", ["a", "b"], ("a", "b"))
    assert (two["new"], two["dangling"], two["shown"]) == (("c",), ("c",), ())
    assert (last["output"], last["calls"], last["input_tokens"]) == ("gold", 1, 9)
    credits = [credit(None, 0.5), credit(0, None, passage="a")]
    whole, part = rows.credit_rows(a_run(), credits)
    measured = credits[0].provenance.reader
    for ran, proxy in ((measured, False), ("another", True), ("", None)):
        run = a_run().model_copy(update={"reader": ran})
        assert {row["proxy"] for row in rows.credit_rows(run, credits)} == {proxy}
    assert (whole["step"], whole["passage"], whole["value"]) == (None, None, 0.5)
    assert (part["step"], part["passage"], part["reason"]) == (0, "a", "no sample")
    for columns, found in ((rows.STEPS, [one, two]), (rows.CREDITS, [whole, part])):
        path = tmp_path / "rows.parquet"
        with sheet(path, columns, "parquet") as add:
            for row in found:
                add(row)
        assert parquet.read_table(path).num_rows == 2


def test_decisions_as_rows(tmp_path: Path) -> None:
    """In the words of the database's table; a limit predicts nothing."""
    worth = Decision(
        policy="value:1a",
        retrieve=True,
        reason="gain",
        stage="free",
        signals={"margin": 0.25},
        gain=0.5,
        cost=90.0,
        usage=Usage(output_tokens=4, calls=1),
    )
    limit = Decision(policy="limit:budget_calls", retrieve=False, reason="spent", retrieval=1)
    run = a_run()
    first, second, last = run.steps
    decided = (first.model_copy(update={"decision": worth}), second)
    decided += (last.model_copy(update={"decision": limit}),)
    one, two = rows.decision_rows(run.model_copy(update={"steps": decided}))
    assert list(one) == list(rows.DECISIONS)
    assert (one["step"], one["stage"], one["predicted_gain"]) == (0, "free", 0.5)
    assert (one["predicted_cost"], one["calls"], one["output_tokens"]) == (90.0, 1, 4)
    assert (two["step"], two["retrieve"], two["predicted_gain"]) == (2, False, None)
    forms: tuple[Form, ...] = ("csv", "parquet")
    for form in forms:
        with sheet(tmp_path / f"rows.{form}", rows.DECISIONS, form) as add:
            add(one)
            add(two)
    with (tmp_path / "rows.csv").open(newline="") as file:
        assert [row["signals"] for row in csv.DictReader(file)] == ['{"margin": 0.25}', "{}"]
    table = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [json.loads(row["signals"]) for row in table] == [{"margin": 0.25}, {}]
    assert [row["retrieve"] for row in table] == [True, False]


def test_a_file_that_could_not_be_finished_leaves_the_old_one(tmp_path: Path) -> None:
    write(tmp_path / "runs.csv", "csv")
    before = (tmp_path / "runs.csv").read_bytes()
    with pytest.raises(KeyError), sheet(tmp_path / "runs.csv", rows.RUNS, "csv") as add:
        add({"experiment": "other"})
    assert (tmp_path / "runs.csv").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(UsageError, match="cannot be written"):
        write(tmp_path / "runs.csv" / "runs.csv", "csv")


def test_trec_tools_measure_exports_as_we_do(tmp_path: Path) -> None:
    """Labels 0, 1, 1 of the first ranks and a blank in an id."""
    ranked = trec.Ranked(question="q 1", passages=("a b", "c", "d"))
    assert trec.write_rankings(tmp_path / "x.run", [ranked], tag="my run") == 3
    known = {"a b": 0.0, "c": 1.0, "d": 1.0, "e": None}
    assert trec.write_labels(tmp_path / "qrels", {"q 1": known}, binary=True) == 3
    assert (tmp_path / "x.run").read_text().splitlines()[0] == "q%201 Q0 a%20b 0 3 my%20run"
    found = ir_measures.calc_aggregate(
        [ir_measures.AP, ir_measures.nDCG, ir_measures.RR],
        ir_measures.read_trec_qrels(str(tmp_path / "qrels")),
        ir_measures.read_trec_run(str(tmp_path / "x.run")),
    )
    expected = ranking.measures([0, 1, 1], binary=True)
    assert found[ir_measures.AP] == pytest.approx(expected["AP"])
    assert found[ir_measures.nDCG] == pytest.approx(expected["NDCG"])
    assert found[ir_measures.RR] == 0.5


def test_labels_between_0_and_1_are_hundredths(tmp_path: Path) -> None:
    trec.write_labels(tmp_path / "qrels", {"q": {"a": 0.256, "b": -0.5}}, binary=False)
    assert (tmp_path / "qrels").read_text() == "q 0 a 26\nq 0 b 0\n"


def test_rankings_of_runs_and_steps() -> None:
    assert trec.of_run(a_run()) == trec.Ranked(question="q1", passages=("a", "b"))
    steps = [(found.question, found.passages) for found in trec.of_steps(a_run())]
    assert steps == [("q1.0", ("a", "b")), ("q1.1", ("b", "c"))]


def test_labels_come_from_the_passage_or_else_from_its_step() -> None:
    """`c` was never shown; `b` was brought by the first step, whatever the second is worth."""
    both = [credit(None, 0.5, rule="total"), credit(0, 0.25), credit(1, 9.0)]
    assert trec.labels_of_credit(a_run(), both) == {"a": 0.25, "b": 0.25}
    other = Provenance(reader="m", settings={"over": "passages"})
    finer = [*both, credit(0, 0.75, passage="a", provenance=other)]
    assert trec.labels_of_credit(a_run(), finer) == {"a": 0.75, "b": 0.25}
    change = [credit(None, 0.5, rule="total"), credit(0, 0.125, rule="trajectory")]
    assert trec.labels_of_credit(a_run(), change) == {"a": 0.125, "b": 0.125}
    assert trec.labels_of_credit(a_run(), []) == {}


def test_the_highest_label_of_a_passage_counts() -> None:
    first, second = {"a": 0.5, "b": None}, {"a": 0.25, "b": 0.0, "c": None}
    pooled = trec.highest([("q", first), ("q", second), ("p", first)])
    assert pooled == {"q": {"a": 0.5, "b": 0.0, "c": None}, "p": first}


def rewrites(name: str, **utilities: float | None) -> Rewrites:
    return Rewrites(
        question=Question(text=f"{name}?", id=name),
        candidates=tuple(
            Candidate(
                query=query,
                utility=Measurement(value=value, reason="empty" if value is None else None),
            )
            for query, value in utilities.items()
        ),
    )


GAPS = [
    rewrites("a", low=0.1, high=0.9),
    rewrites("b", low=0.0, high=0.1),
    rewrites("c", high=0.6, low=0.2, none=None),
    rewrites("d", low=-0.1, high=0.1),
    rewrites("e", low=0.0, middle=0.2, high=0.3),
    rewrites("same", one=0.5, other=0.5),
    rewrites("nothing", one=None),
]


def test_the_widest_half_of_preferences_is_kept() -> None:
    """Gaps .8, .1, .4, .2, .3: of five the three widest; the filter is not for imitation."""
    found = preferences.preferences(GAPS)
    assert [row["question_id"] for row in found] == ["a", "c", "e"]
    assert found[0] == {
        "prompt": [
            {"role": "system", "content": preferences.INSTRUCTION},
            {"role": "user", "content": "a?"},
        ],
        "chosen": [{"role": "assistant", "content": "high"}],
        "rejected": [{"role": "assistant", "content": "low"}],
        "question_id": "a",
        "history": [],
        "utility_chosen": 0.9,
        "utility_rejected": 0.1,
    }
    whole = preferences.preferences(GAPS, share=Fraction(1))
    assert [row["question_id"] for row in whole] == ["a", "b", "c", "d", "e"]
    best = {
        row["question_id"]: row["completion"][0]["content"] for row in preferences.imitations(GAPS)
    }
    assert best == dict.fromkeys("abcde", "high") | {"same": "one"}


def test_datasets_loads_what_trainers_want(tmp_path: Path) -> None:
    write_lines(tmp_path / "dpo.jsonl", preferences.preferences(GAPS))
    write_lines(tmp_path / "sft.jsonl", preferences.imitations(GAPS))
    cache = str(tmp_path / "cache")
    pairs = Dataset.from_json(str(tmp_path / "dpo.jsonl"), cache_dir=cache)
    turns = List({"role": Value("string"), "content": Value("string")})
    assert {
        name: pairs.features[name] for name in ("prompt", "chosen", "rejected")
    } == dict.fromkeys(("prompt", "chosen", "rejected"), turns)
    assert pairs[1]["rejected"] == [{"role": "assistant", "content": "low"}]
    imitated = Dataset.from_json(str(tmp_path / "sft.jsonl"), cache_dir=cache)
    assert imitated.features["completion"] == turns
    assert len(imitated) == 6


class Index:
    """Finds a passage called as the query's first word."""

    name = "index"

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], int]] = []

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        self.asked.append((list(queries), k))
        return [[Hit(passage=passage(query.split()[0]), score=1.0)] for query in queries]


def test_candidates_are_judged_by_what_they_find() -> None:
    index, meter = Index(), FunctionMeter(lambda keys: {"a": 0.5, "b": 1.5}.get(keys[0]))
    found = preferences.appraise(WHO, ["a  x", "b", "a x", " ", "c"], index, meter, depth=7)
    assert index.asked == [(["a x", "b", "c"], 7)]
    assert found.measured == [("a x", 0.5), ("b", 1.5)]
    assert found.candidates[2].utility.reason == "no value"
    assert preferences.appraise(WHO, [" "], index, meter).candidates == ()


def test_a_question_of_a_conversation_has_its_history_in_a_field_of_its_own(
    tmp_path: Path,
) -> None:
    """The index gets the rewrites only; the reader and the trained model see what was said."""
    said = ["Where was she born?", "In Lisbon."]
    file = tmp_path / "rewrites.jsonl"
    file.write_text(
        json.dumps({"id": "q1", "rewrites": ["b"]})
        + "\n"
        + json.dumps({"id": "q1", "rewrites": ["a"], "history": said})
    )
    given = rewriting.of_question(WHO, rewriting.from_file(file))
    assert given == (["b", "a"], tuple(said))
    asked: list[str] = []

    class Meter(FunctionMeter):
        def measure(self, question: Question, evidences: Any) -> Any:
            asked.append(question.text)
            return super().measure(question, evidences)

    meter = Meter(lambda keys: {"a": 0.5, "b": 1.5}.get(keys[0]))
    found = preferences.appraise(WHO, given.queries, Index(), meter, history=given.history)
    shown = "Conversation:\nUser: Where was she born?\nAssistant: In Lisbon.\n\nQuestion: Who?"
    assert asked == [shown]
    [row] = preferences.imitations([found])
    assert row["history"] == said
    assert row["prompt"][1] == {"role": "user", "content": shown}
    assert row["completion"] == [{"role": "assistant", "content": "b"}]
    [pair] = preferences.preferences([found], share=Fraction(1))
    assert (pair["history"], pair["prompt"]) == (said, row["prompt"])
    assert type(found).model_validate_json(found.model_dump_json()) == found


def test_rewrites_come_from_runs_files_and_readers(tmp_path: Path) -> None:
    assert rewriting.from_runs([a_run(), run_of("a")]) == ["Who?", "first", 'second, "it"']
    file = tmp_path / "rewrites.jsonl"
    file.write_text('{"id": "q1", "rewrites": ["x"]}\n{"question": "Who?", "rewrites": ["y"]}\n')
    known = rewriting.from_file(file)
    assert rewriting.of_question(WHO, known) == (["x"], ())
    assert rewriting.of_question(Question(text="Who?"), known) == (["y"], ())
    assert rewriting.of_question(Question(text="When?"), known) == ([], ())
    reader = ScriptedReader([[reply("one"), reply("two")]])
    assert rewriting.from_reader(reader, [WHO.text], n=2) == [["one", "two"]]
    [[asked]] = reader.generated
    assert (asked.n, asked.temperature) == (2, 1.0)
    assert "Who?" in asked.prompt.text
    file.write_text('{"id": "q1", "rewrites": [], "history": [1]}\n')
    with pytest.raises(CorpusError, match="line 1: needs a list of texts under history"):
        rewriting.from_file(file)
    file.write_text('{"id": "q1", "rewrites": "x"}\n')
    with pytest.raises(CorpusError, match="line 1: needs a list of texts under rewrites"):
        rewriting.from_file(file)


def test_candidates_are_kept_as_they_come(tmp_path: Path) -> None:
    """A process that was killed while writing leaves half a line, which must not stay."""
    settings = {"meter": "grogu"}
    kept = Candidates(tmp_path, settings)
    kept.add(GAPS[0])
    with (tmp_path / "candidates.jsonl").open("a") as file:
        file.write('{"question": {"te')
    again = Candidates(tmp_path, settings)
    assert again.known == {GAPS[0].question: GAPS[0]}
    again.add(GAPS[1])
    assert list(Candidates(tmp_path, settings).known.values()) == GAPS[:2]
    with pytest.raises(UsageError, match="candidates of other settings"):
        Candidates(tmp_path, {"meter": "seper"})
