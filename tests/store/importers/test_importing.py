"""Imported runs are stored once, whole, in an experiment of their own."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hopscope
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Credit, Measurement, Provenance
from hopscope.store.store import Store


def rollout(question: str, answer: str = "Cleo", town: str = "Port Hellon") -> dict[str, Any]:
    text = (
        f"<search>{town}</search>\n<information>Doc 1(Title: {town}) Led by {answer}.\n"
        f"</information>\n<answer>{answer}</answer>"
    )
    return {"question": question, "output": text}


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "runs.db") as opened:
        yield opened


def state(store: Store, name: str) -> list[tuple[str, str, str | None]]:
    return [
        (item.question.text, item.arm, item.outcome and item.outcome.run_id)
        for item in store.experiments.items(name)
    ]


def test_the_same_file_again_changes_nothing(tmp_path: Path, store: Store) -> None:
    """Nor does a copy under another name, nor the file with more runs behind it."""
    path = write(tmp_path / "agent.jsonl", rollout("Who?"), rollout("Where?"))
    first = hopscope.import_runs(path, store=store)
    assert (first.experiment, first.runs, first.retrievals, first.stored) == ("agent", 2, 2, 2)
    before, runs = state(store, "agent"), [store.load(id) for id in store.ids()]
    again = hopscope.import_runs(path, store=store)
    assert (again.stored, again.known) == (0, 2)
    longer = write(tmp_path / "b.jsonl", rollout("Who?"), rollout("Where?"), rollout("When?"))
    more = hopscope.import_runs(longer, store=store, name="agent")
    assert (more.stored, more.known) == (1, 2)
    assert state(store, "agent")[:2] == before
    assert [store.load(run.id) for run in runs] == runs
    assert store.verify() == []


def test_several_runs_of_a_question_are_arms_of_their_own(tmp_path: Path, store: Store) -> None:
    """A group of rollouts, as trainers draw them; equal ones are one."""
    path = write(
        tmp_path / "group.jsonl",
        rollout("Who?"),
        rollout("Who?", "Ada"),
        rollout("Who?"),
        rollout("Where?"),
    )
    report = hopscope.import_runs(path, store=store, label="agent")
    assert (report.runs, report.stored, report.known) == (4, 3, 1)
    assert [(question, arm) for question, arm, _ in state(store, "group")] == [
        ("Who?", "agent"),
        ("Who?", "agent#2"),
        ("Where?", "agent"),
    ]


def test_right_answers_from_a_file(tmp_path: Path, store: Store) -> None:
    path = write(tmp_path / "agent.jsonl", rollout("Who?") | {"id": "q1"}, rollout("Where  is it?"))
    hopscope.import_runs(path, store=store)
    gold = write(
        tmp_path / "gold.jsonl",
        {"id": "q1", "answers": ["Cleo Marwick", "Cleo"]},
        {"question": "where is IT?", "answer": "here"},
    )
    [first, _] = store.ids()
    old = Credit(
        run_id=first,
        step=None,
        rule="total",
        meter="grogu",
        measurement=Measurement(value=1.0),
        provenance=Provenance(reader="tiny"),
    )
    store.save_credits([old])
    report = hopscope.import_runs(path, store=store, gold=gold)
    assert (report.answered, report.stored, report.known, report.corrected) == (2, 0, 2, 2)
    items = store.experiments.items("agent")
    assert [item.question.answers for item in items] == [("Cleo Marwick", "Cleo"), ("here",)]
    assert store.load(first).question.answers == ("Cleo Marwick", "Cleo")
    assert store.credits(first) == []  # measured by other answers
    without = hopscope.import_runs(path, store=store)
    assert (without.known, without.corrected) == (2, 0)
    assert store.load(first).question.answers == ("Cleo Marwick", "Cleo")


def test_the_report_tells_how_many_right_answers_were_found(tmp_path: Path, store: Store) -> None:
    """A file for other questions was taken in silence, and SePer had nothing to measure by."""
    path = write(tmp_path / "agent.jsonl", rollout("Who?"), rollout("Where?"))
    some = write(tmp_path / "some.jsonl", {"question": "where?", "answers": ["here"]})
    report = hopscope.import_runs(path, store=store, gold=some)
    assert (report.matched, report.answered, report.notes) == (1, 1, [])
    none = write(tmp_path / "none.jsonl", {"question": "Why?", "answers": ["so"]})
    report = hopscope.import_runs(path, store=store, gold=none)
    assert (report.matched, report.answered) == (0, 0)
    [note] = report.notes
    assert note.startswith("none.jsonl has right answers to none of the questions: it has 'why?'")
    assert hopscope.import_runs(path, store=store).matched is None


def test_tools_that_nothing_calls_are_named(tmp_path: Path, store: Store) -> None:
    """A slip in the name gave runs without a single search."""
    messages: list[Any] = [{"role": "user", "content": "Who?"}]
    for name in ("lookup", "clock"):
        call = {"id": name, "function": {"name": name, "arguments": "{}"}}
        messages.append({"role": "assistant", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": name, "content": "Led by Cleo."})
    path = write(tmp_path / "agent.jsonl", {"messages": messages})
    report = hopscope.import_runs(path, store=store, format="messages:tools=lookup serch")
    assert report.retrievals == 1
    assert report.notes == [
        "tools=serch: nothing calls a tool of that name; other tools that are called: clock"
    ]


def test_only_texts_that_were_parted_count_as_such(tmp_path: Path, store: Store) -> None:
    call = {"id": "1", "function": {"name": "search", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Who?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "[1] Led by Cleo.\n[2] Led by Ada."},
    ]
    path = write(tmp_path / "agent.jsonl", {"messages": messages})
    whole = hopscope.import_runs(path, store=store, format="messages:split=whole", name="whole")
    assert whole.parted == 0
    [run] = map(store.load, store.ids())
    assert run.options["split"] == {"1": "whole"}
    assert hopscope.import_runs(path, store=store, name="parted").parted == 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"question": "Who?"}, "line 2: give 'question' or 'id', and 'answers'"),
        ({"answers": ["Ada"]}, "line 2: give"),
        ({"question": "who?", "answers": ["Ada"]}, "other answers on an earlier line"),
        ({"question": "Where?", "answers": {"a": 1}}, "line 2: 'answers' must"),
    ],
)
def test_a_broken_file_of_right_answers_is_refused_first(
    tmp_path: Path, store: Store, line: Any, problem: str
) -> None:
    path = write(tmp_path / "agent.jsonl", rollout("Who?"))
    gold = write(tmp_path / "gold.jsonl", {"question": "Who?", "answers": "Cleo"}, line)
    with pytest.raises(UsageError, match=problem):
        hopscope.import_runs(path, store=store, gold=gold)
    assert store.ids() == []


def test_what_cannot_be_read_is_counted_and_the_rest_is_stored(
    tmp_path: Path, store: Store
) -> None:
    lines = [
        json.dumps(rollout("Who?")).encode(),
        b"{broken",
        b'{"question": "Who?", "output": 3}',
        b"[" * 100_000,
        b'{"question": "\xff"}',
        json.dumps(rollout("W\ud83d?")).encode(),
        json.dumps(rollout("Long?") | {"output": "<answer>" + "a" * 10_000_000}).encode(),
    ]
    path = tmp_path / "hostile.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines) + b"\n")
    report = hopscope.import_runs(path, store=store)
    assert (report.stored, report.unread) == (3, 4)
    named = " ".join(f"{where}: {problem}" for where, problem in report.problems)
    assert "line 2: broken JSON" in named
    assert "line 4: JSON that is nested too deep" in named
    assert "line 5: byte 0xff is not UTF-8" in named
    places = [where for where, _ in report.problems]
    assert places == [f"hostile.jsonl, line {line}" for line in (2, 3, 4, 5)]


def test_what_comes_before_the_end_of_a_damaged_file_is_stored(
    tmp_path: Path, store: Store
) -> None:
    records = [rollout(f"Who leads town {place}?", f"{place}") for place in range(400)]
    data = gzip.compress("".join(json.dumps(each) + "\n" for each in records).encode())
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(data[: len(data) // 2])
    report = hopscope.import_runs(path, store=store)
    assert report.experiment == "cut"
    assert 0 < report.stored == len(store.ids()) < 400
    assert report.unread == 1
    assert "damaged gzip" in report.problems[0].where
    path.write_bytes(data)
    whole = hopscope.import_runs(path, store=store)
    assert (whole.known, whole.stored + whole.known) == (report.stored, 400)


def test_a_folder_is_read_file_by_file_each_by_its_format(tmp_path: Path, store: Store) -> None:
    folder = tmp_path / "traces"
    (folder / "inner").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    write(folder / "a.jsonl", rollout("Who?"))
    write(folder / "inner" / "b.jsonl", {"messages": [{"role": "user", "content": "Where?"}]})
    write(folder / ".hidden" / "c.jsonl", rollout("When?"))
    write(folder / "d.jsonl", {"something": "else"})
    (folder / "README.md").write_text("no data", encoding="utf-8")
    report = hopscope.import_runs(folder, store=store, name="all")
    assert report.formats == {"a.jsonl": "search_r1", "inner/b.jsonl": "messages"}
    assert [where for where, _ in report.problems] == ["d.jsonl"]
    assert {store.load(id).options["file"] for id in store.ids()} == {"a.jsonl", "inner/b.jsonl"}
    assert str(tmp_path) not in "".join(store.load(id).model_dump_json() for id in store.ids())


def test_what_cannot_be_imported_says_why(tmp_path: Path, store: Store) -> None:
    path = write(tmp_path / "agent.jsonl", rollout("Who?"))
    odd = write(tmp_path / "odd.jsonl", {"something": "else"})
    empty = write(tmp_path / "empty.jsonl")
    broken, unzipped, picture = (
        tmp_path / n for n in ("broken.jsonl", "bad.jsonl.gz", "picture.json")
    )
    broken.write_text("{broken\n" * 30, encoding="utf-8")
    unzipped.write_bytes(b"\x1f\x8b" + b"no gzip" * 9)
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    for arguments, options, problem in (
        ((path,), {"format": "csv"}, "choose from flashrag"),
        ((odd,), {}, "looks like none of the formats; give --format, one of flashrag"),
        ((empty,), {}, r"empty.jsonl: the file is empty\Z"),
        ((broken,), {}, r"broken.jsonl: line 1: broken JSON at column 2[^;]*; each line must be"),
        ((unzipped,), {}, "bad.jsonl.gz: the file is a damaged gzip file"),
        ((picture,), {}, r"picture.json: a binary file, and no traces in OTLP protobuf\Z"),
        ((odd, empty), {}, "odd.jsonl: looks like none.*; empty.jsonl: the file is empty; give"),
        ((tmp_path / "absent",), {}, "there is no file"),
        ((), {}, "name a file"),
        ((path,), {"format": "search-r1:k=3"}, "unknown option 'k'"),
    ):
        with pytest.raises(UsageError, match=problem):
            hopscope.import_runs(*arguments, store=store, **options)  # type: ignore[arg-type]
    assert store.ids() == []
    assert hopscope.import_runs(path, store=store, format="search-r1").stored == 1


def test_a_run_that_another_experiment_has_stays_there(tmp_path: Path, store: Store) -> None:
    """Two imports under two names are two experiments, each with runs of its own."""
    path = write(tmp_path / "agent.jsonl", rollout("Who?"))
    assert hopscope.import_runs(path, store=store, name="one").stored == 1
    assert hopscope.import_runs(path, store=store, name="two").stored == 1
    assert len(store.ids()) == 2


def test_an_import_that_reads_nothing_leaves_no_experiment(tmp_path: Path, store: Store) -> None:
    for name, text, unread in (("empty", "", 1), ("broken", "{a\n{b\n", 2)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(text, encoding="utf-8")
        report = hopscope.import_runs(path, store=store, format="messages")
        assert (report.runs, report.unread) == (0, unread)
        assert report.notes == [f"no run was found, and the experiment {name} stays as it was"]
    assert store.experiments.all() == []


def test_all_broken_lines_are_counted_where_they_stand(tmp_path: Path, store: Store) -> None:
    """More than are named, one after the other, before and after a run."""
    path = tmp_path / "agent.jsonl"
    broken = "{broken\n" * 150
    path.write_text(broken + json.dumps(rollout("Who?")) + "\n" + broken, encoding="utf-8")
    report = hopscope.import_runs(path, store=store, format="search-r1")
    assert (report.stored, report.unread, len(report.problems)) == (1, 300, 100)
    assert store.load(store.ids()[0]).options["line"] == 151


def test_a_format_that_finds_no_retrieval_is_told(tmp_path: Path, store: Store) -> None:
    path = write(tmp_path / "agent.jsonl", rollout("Who?"))
    wrong = hopscope.import_runs(path, store=store, name="wrong", format="r1_searcher")
    assert (wrong.runs, wrong.retrievals) == (1, 0)
    [note] = wrong.notes
    assert "no retrieval was found as r1_searcher" in note
    assert hopscope.import_runs(path, store=store, name="right").notes == []
