"""Components from outside the repository: a distribution of one of each kind is installed, and
real commands use them, by entry point and by file."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hopscope.cli.main import main
from hopscope.store.store import Store
from tests import commands
from tests.commands import Commands

SOURCE = Path(__file__).parent / "outside"
OFFERED = {
    "workflows": "one_shot",
    "meters": "overlap",
    "rules": "equal_shares",
    "readers": "parrot",
    "retrievers": "shelf",
    "policies": "once",
    "entailments": "same_text",
    "metrics": "brevity",
    "rerankers": "shortest",
    "compressors": "first_words",
    "fusions": "in_turn",
    "tables": "answers",
    "suites": "same_seed",
    "formats": "diary",
    "services": "scrapbook",
}
"""By the kind that `hopscope list` calls them."""

Hopscope = Callable[..., str]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the distribution is installed in."""
    source = tmp_path_factory.mktemp("source") / "outside"
    shutil.copytree(SOURCE, source)
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet"]
    subprocess.run(
        [*pip, "--no-build-isolation", "--target", str(target), str(source)],
        check=True,
        capture_output=True,
    )
    return target


@pytest.fixture(scope="module")
def given(site: Path) -> Iterator[Commands]:
    """Where the distribution is installed."""
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    with commands.started(environment={"PYTHONPATH": os.pathsep.join(paths)}) as given:
        yield given


@pytest.fixture(scope="module")
def given_elsewhere() -> Iterator[Commands]:
    """Where it is not."""
    with commands.started() as given:
        yield given


def command(given: Commands, folder: Path, *more: Path) -> Hopscope:
    """Gives commands in a folder, each to a process of its own; what they print."""
    (folder / "question.jsonl").write_text(
        '{"question": "Where does Polly live?", "golden_answers": ["Zana"]}\n'
    )
    paths = [*map(str, more), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "HOPSCOPE_DB": str(folder / "runs.db"),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "80",
    }

    def hopscope(*arguments: str, fails: bool = False) -> str:
        done = given(*arguments, folder=folder, environment=environment)
        assert done.code == (2 if fails else 0), done.err
        assert "Traceback" not in done.err
        return done.err if fails else done.out

    return hopscope


@pytest.fixture
def hopscope(given: Commands, site: Path, tmp_path: Path) -> Hopscope:
    return command(given, tmp_path, site)


@pytest.mark.parametrize("kind", OFFERED)
def test_each_kind_is_listed_with_the_distribution(
    site: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(site)
    with pytest.raises(SystemExit) as stop:
        main(["list", kind, "--json"])
    assert stop.value.code == 0
    rows = {(row["name"], row["from"]): row for row in json.loads(capsys.readouterr().out)}
    row = rows[OFFERED[kind], "outside-parts 1.2"]
    assert row["summary"].endswith(".")
    assert not row["summary"].startswith("cannot be used")
    for name in [name for name in sys.modules if name.startswith("outside_parts")]:
        monkeypatch.delitem(sys.modules, name)


def test_what_cannot_be_used_is_listed_with_the_reason(hopscope: Hopscope) -> None:
    """And what is there beside it goes on working."""
    printed = " ".join(hopscope("list", "workflows").split())
    assert "outside-parts 1.2 offers it, but hopscope has one of that name" in printed
    assert "Lewis et al." in printed
    meters = " ".join(hopscope("list", "meters").split())
    assert "absent among meters comes from outside-parts 1.2 and cannot be imported" in meters
    hopscope("run", "Who?", "-w", "naive", "--samples", "1", "--reader", "parrot")


def asked(hopscope: Hopscope, *parts: str) -> Any:
    run = ("run", "Where does Polly live?", "--gold", "Polly", "--samples", "1", "--json")
    return json.loads(hopscope(*run, *parts))


def test_a_run_is_made_of_them(hopscope: Hopscope) -> None:
    corpus = "in_turn(shelf,hopland)@RR(shortest)@3@CP(first_words,words=2)"
    parts = ("--reader", "parrot:Polly", "--corpus", corpus, "--entailment", "same_text")
    found = asked(hopscope, "-w", "one_shot", "-o", "k=3", "--policy", "once:1", *parts)
    assert (found["workflow"], found["reader"], found["answer"]) == (
        "one_shot",
        "parrot:Polly",
        "Polly",
    )
    look = found["steps"][0]
    assert [passage["id"] for passage in look["passages"]] == ["1", "2", "0"], "shortest first"
    assert "first_words" in look["output"]
    assert "shelf:own" in found["retriever"]
    assert "(once:1)" in hopscope("budget", "explain", "last")


def test_an_experiment_is_made_measured_credited_and_compared_by_them(hopscope: Hopscope) -> None:
    """In worker processes, too."""
    hopscope(
        *("eval", "question.jsonl", "-w", "one_shot:k=2", "--name", "first", "--samples", "1"),
        *("--reader", "parrot", "--corpus", "shelf", "--entailment", "same_text"),
        *("--meter", "overlap", "--rule", "equal_shares", "-o", "overlap.shortest=5"),
    )
    credit = ("--meter", "overlap", "--rule", "equal_shares")
    printed = json.loads(hopscope("credit", "first", *credit, "--rule", "shapley", "--json"))
    shares = {row["rule"]: row["value"] for row in printed["credits"] if row["step"] == 0}
    assert shares["equal_shares"] == shares["shapley"] == 1 / 3, "Polly, of three long words"
    replayed = ("credit", "last", "--mode", "replay", "--corpus", "shelf", "--reader", "parrot")
    assert "equal-shares" in hopscope(*replayed, *credit)
    assert re.search(r"one_shot:k=2 +1\b", hopscope("compare", "first", "-t", "answers"))
    assert "brevity" in hopscope("score", "last", "--metric", "brevity:1")


ASKED = ("--reader", "parrot:Polly", "--corpus", "shelf", "--entailment", "same_text")
BY_THEM = ("--samples", "1", "--rule", "trajectory", "--rule", "equal_shares")


def test_a_third_meter_is_told_of_a_run_like_the_first_two(
    hopscope: Hopscope, tmp_path: Path
) -> None:
    """By its own heading and digits, beside SePer."""
    found = asked(
        *(hopscope, "-w", "one_shot", *ASKED, *BY_THEM, "--meter", "seper", "--meter", "overlap"),
        *("--trace-file", "spans.jsonl"),
    )
    whole, look = found["total"]["overlap"], found["steps"][0]["credit"]["overlap"]
    assert whole["after"] - whole["before"] == whole["delta"] == look["delta"] > 0
    assert look["equal_shares"] == whole["delta"]
    assert found["total"]["seper"] is not None
    change = f"{whole['delta']:+.3f}"
    shown = hopscope("show")
    assert f"Overlap 0.000 → {whole['after']:.3f}" in shown
    assert f"ΔOverlap {change}" in shown
    assert f"equal-shares {change}" in shown
    assert "SePer " in shown
    assert json.loads(hopscope("show", "--json")) == found
    [listed] = json.loads(hopscope("ls", "--json"))
    assert listed["totals"]["overlap"] == whole["delta"]
    spans = (tmp_path / "spans.jsonl").read_text()
    assert "overlap.trajectory" in spans
    assert "overlap.equal_shares" in spans
    with Store.open(tmp_path / "runs.db", create=False) as store:
        kept = {(c.meter, c.rule, c.step): c.measurement.value for c in store.credits(found["id"])}
    assert kept["overlap", "equal_shares", 0] == whole["delta"]
    credited = hopscope("credit", "last", "--meter", "overlap", "--rule", "shapley")
    assert change in credited
    assert "ΔOverlap" in hopscope("ls"), "the meter of the last appraisal"
    rows = json.loads(hopscope("list", "meters", "--json"))
    [told] = [row for row in rows if row["name"] == "overlap"]
    assert (told["heading"], told["unit"], told["gold"]) == ("Overlap", "share of words", False)


def test_a_third_meter_is_told_of_an_experiment_like_the_first_two(
    hopscope: Hopscope, tmp_path: Path
) -> None:
    ask = ("eval", "question.jsonl", "-w", "one_shot", "--name", "first", *ASKED, *BY_THEM)
    assert re.search(r"ΔOverlap .*\n.* \+0\.\d{3} ", hopscope(*ask, "--meter", "overlap"))
    [item] = json.loads(hopscope(*ask, "--meter", "overlap", "--json"))["items"]
    change = item["run"]["overlap_delta"]["value"]
    means = [*csv.DictReader(StringIO(hopscope("compare", "first", "-t", "overview", "--csv")))]
    assert float(means[0]["overlap_delta"]) == change
    printed = " ".join(hopscope("compare", "first", "-t", "credit_by_step").split())
    assert "ΔOverlap" in printed
    assert "equal-shares" in printed
    hopscope("export", "rows", "first", "--out", "rows")
    assert f",overlap,equal_shares,{change}," in (tmp_path / "rows" / "credits.csv").read_text()


def test_a_run_measured_by_a_file_is_shown_without_it(by_file: Hopscope, tmp_path: Path) -> None:
    """Under the meter's name then, with two digits."""
    parts = ("--reader", "parrot.py:Polly", "--corpus", "shelf.py", "-w", "one_shot.py")
    found = asked(by_file, *parts, "--meter", "overlap.py", "--rule", "trajectory")
    assert found["total"]["overlap"]["delta"] > 0
    for module in tmp_path.glob("*.py"):
        module.unlink()
    shown = by_file("show")
    assert "overlap 0.00 → " in shown
    assert "Δoverlap +0." in shown
    assert json.loads(by_file("show", "--json")) == found


def test_a_suite_is_run_by_name(hopscope: Hopscope) -> None:
    found = json.loads(hopscope("lab", "--only", "same_seed", "--limit", "2", "--json"))
    [figure] = found["same_seed"].values()
    assert figure["value"] == 1


def test_a_file_is_imported_by_a_format(hopscope: Hopscope, tmp_path: Path) -> None:
    diary = tmp_path / "diary.jsonl"
    told = {"asked": "Where does Polly live?", "found": ["Polly lives in Zana."], "said": "Zana"}
    diary.write_text(f"{json.dumps(told)}\n", encoding="utf-8")
    out = hopscope("import", str(diary))
    assert "1 run with 1 retrieval read (diary): 1 new in the experiment diary" in out
    book = tmp_path / "book.jsonl"
    sent = hopscope("push", "scrapbook", "last", "--to", str(book))
    assert "1 trace, 2 annotations sent to scrapbook at" in sent
    assert len(book.read_text(encoding="utf-8").splitlines()) == 3
    assert "nothing sent" in hopscope("push", "scrapbook", "last", "--to", str(book))


def test_an_index_search_takes_a_retriever_and_its_argument(
    hopscope: Hopscope, tmp_path: Path
) -> None:
    (tmp_path / "lines.txt").write_text("First line.\nSecond line.\n")
    printed = hopscope("index", "search", "shelf:lines.txt", "anything", "-k", "1")
    assert "First line." in printed
    assert "Second line." not in printed
    told = hopscope("index", "search", "shelf:lines.txt:more", "anything", fails=True)
    assert "Traceback" not in told


@pytest.fixture
def by_file(given_elsewhere: Commands, tmp_path: Path) -> Hopscope:
    """Nothing is installed: the modules lie in the folder."""
    for module in (SOURCE / "outside_parts").glob("[a-z]*.py"):
        shutil.copy(module, tmp_path)
    return command(given_elsewhere, tmp_path)


def test_files_stand_wherever_a_component_is_named(by_file: Hopscope) -> None:
    corpus = "./in_turn.py(./shelf.py,hopland)@RR(./shortest.py)@3@CP(./first_words.py,words=2)"
    parts = ("--reader", "./parrot.py:Polly", "--corpus", corpus, "--entailment", "./same_text.py")
    found = asked(by_file, "-w", "./one_shot.py", "-o", "k=3", "--policy", "./once.py:1", *parts)
    assert (found["workflow"], found["answer"]) == ("one_shot.py", "Polly")
    assert [passage["id"] for passage in found["steps"][0]["passages"]] == ["1", "2", "0"]
    assert "(once:1)" in by_file("budget", "explain", "last")


def test_an_experiment_by_files_goes_on_and_is_credited_by_them(by_file: Hopscope) -> None:
    made = (
        *("eval", "question.jsonl", "--name", "first", "--samples", "1"),
        *("-w", "./one_shot.py:k=2,policy=./once.py:1", "--rule", "./equal_shares.py"),
        *("--reader", "./parrot.py", "--corpus", "./shelf.py", "--entailment", "./same_text.py"),
        *("--meter", "./overlap.py", "-o", "overlap.shortest=5"),
    )
    printed = by_file(*made)  # the table folds a long name
    assert re.search(r"^one_shot\.py:k=2,p .*\n^olicy=once\.py:1 ", printed, re.MULTILINE)
    by_file(*made)
    told = by_file("credit", "first", "--again", fails=True)
    assert re.search(r"add --file PATH/\w+\.py", told)
    files = [f"{name}.py" for name in ("parrot", "same_text", "overlap", "equal_shares")]
    named = [word for file in files for word in ("--file", file)]
    assert "equal-shares" in by_file("credit", "first", "--again", *named)
    assert "answers" in by_file("compare", "first", "-t", "./answers.py")
    scored = by_file("score", "last", "-m", "./brevity.py:1")
    assert re.search(r"^brevity\.py:1 +1\.00", scored, re.MULTILINE)
    told = by_file("run", "Who?", "-w", "one_shot.py:kk=1", fails=True)
    assert "unknown option 'kk'" in told


def test_a_meter_that_was_changed_measures_anew(by_file: Hopscope, tmp_path: Path) -> None:
    """Credits were taken for those that the former text of the file had measured."""
    by_file(
        *("eval", "question.jsonl", "-w", "one_shot.py", "--name", "first", "--samples", "1"),
        *("--reader", "parrot.py", "--corpus", "shelf.py", "--meter", "overlap.py"),
    )
    credit = ("credit", "first", "--meter", "overlap.py", "--file", "parrot.py", "--json")
    before = by_file(*credit)
    meter = tmp_path / "overlap.py"
    meter.write_text(meter.read_text().replace("/ len(words)", "/ len(words) / 2"))
    after = by_file(*credit)
    assert values(before) != values(after)


def values(printed: str) -> list[float | None]:
    return re.findall(r'"value": ([^,\s]+)', printed)


def test_the_page_on_extending_tells_all_kinds_and_its_example_runs(
    by_file: Hopscope, tmp_path: Path
) -> None:
    page = (SOURCE.parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    rows = "".join(line for line in page.splitlines() if line.startswith("| `"))
    assert [kind for kind in OFFERED if f"`{kind}`" not in rows] == []
    module, *_ = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "word_overlap.py").write_text(module)
    parts = ("--reader", "parrot.py", "--corpus", "shelf.py")
    asked(by_file, "-w", "one_shot.py", *parts)
    meter = ("--meter", "./word_overlap.py", "-o", "word_overlap.shortest=5")
    printed = json.loads(by_file("credit", "--rule", "shapley", "--json", *meter, *parts[:2]))
    [share] = [row for row in printed["credits"] if (row["step"], row["rule"]) == (0, "shapley")]
    assert (share["meter"], share["value"]) == ("word_overlap", 1 / 3)
    assert re.fullmatch(r"word_overlap\.py#\w{16}", printed["appraisal"]["settings"]["code"])
