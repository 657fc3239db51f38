"""`hopscope export` of real runs of the embedded world, kept as an experiment in SQLite."""

import json
from pathlib import Path

import ir_measures
import pytest
from pyarrow import parquet

from hopscope.runtime.types import Decision, Run
from hopscope.tracing.reports.shown import shown_passages
from tests.cli.experiment_example import QUESTIONS, WORKFLOWS, call, fill, make_runs


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """The last retrieves because a policy said so."""
    *others, last = make_runs()
    decided = Decision(policy="fixed:1", retrieve=True, reason="so told")
    first, *rest = last.steps
    steps = (first.model_copy(update={"decision": decided}), *rest)
    return [*others, last.model_copy(update={"steps": steps})]


@pytest.fixture(scope="module")
def database(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("experiments") / "runs.db"
    fill(file, runs)
    return ["--db", str(file)]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_how_it_was_made(capsys: pytest.CaptureFixture[str], database: list[str]) -> None:
    code, out, _ = call(capsys, "export", "settings", "done", *database)
    found = json.loads(out)
    assert code == 0
    assert found["experiment"]["retriever"].startswith("bm25:hopland@")
    assert [sitting["owner"] for sitting in found["sittings"]] == ["here"]
    code, _, err = call(capsys, "export", "settings", "nowhere", *database)
    assert (code, "no experiment 'nowhere'" in err) == (2, True)


def test_rows_of_all_runs_steps_and_credits(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run], tmp_path: Path
) -> None:
    for form in ("jsonl", "parquet", "csv"):
        code, out, err = call(
            capsys, "export", "rows", "done", "--out", str(tmp_path), "--form", form, *database
        )
        assert code == 0, err
        names = ["runs", "steps", "decisions", "credits"]
        assert out.splitlines() == [str(tmp_path / f"{name}.{form}") for name in names]
    found = lines(tmp_path / "runs.jsonl")
    assert [row["answer"] for row in found] == [run.answer for run in runs]
    assert [row["input_tokens"] for row in found] == [run.usage.input_tokens for run in runs]
    steps = parquet.read_table(tmp_path / "steps.parquet").to_pylist()
    assert [row["output"] for row in steps] == [s.output for run in runs for s in run.steps]
    [decision] = lines(tmp_path / "decisions.jsonl")
    assert (decision["run_id"], decision["policy"]) == (runs[-1].id, "fixed:1")
    # Level and total of each run, and the share of each of naive RAG's retrievals.
    assert len(lines(tmp_path / "credits.jsonl")) == 5 * QUESTIONS


def test_rankings_and_labels_from_stored_credit(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run], tmp_path: Path
) -> None:
    code, _, err = call(capsys, "export", "trec", "done", "--out", str(tmp_path), *database)
    assert code == 0, err
    [ranked] = [list(ir_measures.read_trec_run(str(tmp_path / "naive.run")))]
    shown = [key for run in runs[1::2] for key in shown_passages(run)]
    assert [row.doc_id for row in ranked] == shown
    assert (tmp_path / "closed_book.run").read_text() == ""
    labels = {
        (row.query_id, row.doc_id): row.relevance
        for row in ir_measures.read_trec_qrels(str(tmp_path / "qrels"))
    }
    # What naive RAG's retrievals were worth: 1/8, 3/8 and 5/8, in hundredths.
    assert set(labels.values()) == {12, 38, 62}


def test_what_is_there_is_replaced_only_when_asked(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    """Data of another experiment in the same folder were gone without a word."""
    for form, file in (("rows", "steps.csv"), ("trec", "qrels")):
        kept = tmp_path / form / file
        kept.parent.mkdir()
        kept.write_text("mine")
        command = ["export", form, "done", "--out", str(kept.parent), *database]
        code, out, err = call(capsys, *command)
        assert (code, out) == (2, "")
        assert f"{kept} is there already: give --overwrite" in err
        assert [path.read_text() for path in kept.parent.iterdir()] == ["mine"]
        assert call(capsys, *command, "--overwrite")[0] == 0
        assert kept.read_text() != "mine"


def test_labels_from_what_the_reader_answers(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run], tmp_path: Path
) -> None:
    asked = ("export", "trec", "done", "--labels", "erag", "--of", "steps")
    code, out, err = call(capsys, *asked, "--out", str(tmp_path), *database)
    assert code == 0, err
    labels = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels")))
    assert {row.relevance for row in labels} <= {0, 1}
    ids = [run.question.id for run in runs[1::2]]
    assert {row.query_id for row in labels} == {f"{each}.0" for each in ids}
    assert f"{len(labels)} labels" in out


def test_preference_data_from_what_runs_searched_for(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run], tmp_path: Path
) -> None:
    rewrites = tmp_path / "rewrites.jsonl"
    asked = [run.question for run in runs[::2]]
    given = [{"id": q.id, "rewrites": [q.text, q.text.split()[-1], "x"]} for q in asked]
    rewrites.write_text("".join(json.dumps(row) + "\n" for row in given), "utf-8")
    out = tmp_path / "data"
    command = ["export", "preferences", "done", "--out", str(out), "--rewrites", str(rewrites)]
    command += ["-k", "2", "--share", "1", *database]
    code, _, err = call(capsys, *command)
    assert code == 0, err
    kept = lines(out / "candidates.jsonl")
    assert [len(row["candidates"]) for row in kept] == [3] * QUESTIONS  # type: ignore[arg-type]
    imitated, preferred = lines(out / "sft.jsonl"), lines(out / "dpo.jsonl")
    assert [row["question_id"] for row in imitated] == [question.id for question in asked]
    for row in preferred:
        assert row["utility_chosen"] > row["utility_rejected"]  # type: ignore[operator]
        assert row["chosen"] != row["rejected"]
    # Asked again, nothing is appraised twice.
    assert call(capsys, *command)[0] == 0
    assert lines(out / "candidates.jsonl") == kept
    code, _, err = call(capsys, *command, "--seed", "1")
    assert code == 2
    assert "candidates of other settings" in err


def test_without_a_file_the_candidates_are_the_runs_queries(
    capsys: pytest.CaptureFixture[str], database: list[str], runs: list[Run], tmp_path: Path
) -> None:
    """Naive RAG searches for the question as it is, so there is one candidate and no preference."""
    asked = ("export", "preferences", "done", "--out", str(tmp_path), "-k", "1")
    code, out, err = call(capsys, *asked, *database)
    assert code == 0, err
    assert f"sft.jsonl  {QUESTIONS} rows" in out
    assert "dpo.jsonl  0 rows" in out
    said = [row["completion"][0]["content"] for row in lines(tmp_path / "sft.jsonl")]  # type: ignore[index]
    assert said == [" ".join(run.question.text.split()) for run in runs[::2]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rows", "nothing"], "no experiment 'nothing'"),
        (["rows", "done", "--form", "xml"], "xml"),
        (["trec", "begun"], "nothing of begun has a label"),
        (["trec", "done", "-m", "em", "--labels", "erag"], "choose from bertscore, bleu"),
        (["preferences", "begun"], "nothing of begun is done yet"),
        (["preferences", "done", "--meter", "mood"], "no 'mood' among meters"),
        (["preferences", "done", "--rewrites", "/nowhere"], "/nowhere does not exist"),
    ],
)
def test_wrong_use_is_told_in_one_message(
    capsys: pytest.CaptureFixture[str],
    database: list[str],
    tmp_path: Path,
    arguments: list[str],
    said: str,
) -> None:
    code, _, err = call(capsys, "export", *arguments, "--out", str(tmp_path), *database)
    assert code in (1, 2)
    assert said in " ".join(err.split())
    assert "Traceback" not in err


def test_files_are_named_after_systems_whatever_these_are_called() -> None:
    from hopscope.cli.commands.export import _file_name

    names = ["ircot:k=3", "ircot_k=3", "a/b", ".."]
    assert len({_file_name(name) for name in names}) == len(names)
    assert "/" not in _file_name("a/b")
    assert tuple(map(_file_name, WORKFLOWS)) == WORKFLOWS
