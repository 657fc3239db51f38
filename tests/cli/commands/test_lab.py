"""`hopscope lab` as a whole: every suite on a small real run of the embedded reader.

What the reader answers is not known here: expectations hold for any.
"""

import json
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hopscope.cli.main import main
from hopscope.lab import validity
from hopscope.lab.validity import seper
from hopscope.runtime import components
from tests.cli.experiment_example import call

Figures = dict[str, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def found() -> Figures:
    """All suites, two questions of each kind."""
    printed = StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        main(["lab", "--limit", "2", "--seed", "5", "--json"])
    loaded: Figures = json.loads(printed.getvalue())
    return loaded


@pytest.mark.slow
def test_every_suite_has_figures_and_every_figure_a_value_or_a_reason(found: Figures) -> None:
    assert list(found) == components.names(validity)
    for suite, figures in found.items():
        assert figures, suite
        assert "error" not in figures, figures["error"]["reason"]
        for name, figure in figures.items():
            assert {"value", "low", "high", "n"} <= figure.keys()
            assert (figure["value"] is None) == bool(figure["reason"]), name
            assert isinstance(figure["n"], int)
            assert (figure["low"] is None) == (figure["high"] is None)
            if figure["low"] is not None:
                assert figure["value"] is not None
                assert figure["low"] <= figure["high"], name


@pytest.mark.slow
def test_the_same_seed_gives_the_same_figures_alone_or_among_others(
    capsys: pytest.CaptureFixture[str], found: Figures
) -> None:
    options = ("--limit", "2", "--seed", "5", "--only", "step_credit", "--json")
    code, out, err = call(capsys, "lab", *options)
    assert code == 0, err
    assert json.loads(out) == {"step_credit": found["step_credit"]}


def test_tables_for_people_and_for_documents(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--limit", "1", "--only", "step_credit")
    code, out, _ = call(capsys, "lab", *options)
    assert code == 0
    assert "AUROC for steps that retrieved a gold passage" in out
    code, out, _ = call(capsys, "lab", *options, "--markdown")
    assert code == 0
    assert "| Shapley of a perfect reader |" in out


def test_a_refused_option_of_a_meter_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    """It was found in the suite, which then counted as failed."""
    code, out, err = call(capsys, "lab", "seper", "--limit", "1", "-o", "seper.tolerance=2")
    assert (code, out) == (2, "")
    assert "SePer needs a tolerance in [0, 1)" in err


def test_a_suite_that_fails_leaves_the_others_their_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ValueError("no such thing")

    monkeypatch.setattr(seper, "build", broken)
    only = ("--only", "seper", "--only", "step_credit")
    code, out, err = call(capsys, "lab", "--limit", "1", *only, "--json")
    assert code == 1
    assert "suite seper failed: ValueError: no such thing" in err
    printed = json.loads(out)
    assert printed["seper"]["error"]["reason"] == "ValueError: no such thing"
    assert "auroc/Shapley/all" in printed["step_credit"]


def test_embedded_questions_are_searched_in_the_embedded_world(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As in `run` and `eval`; the file of the package has no passages of its own."""
    options = ("--data", "hopland:dev", "--limit", "1", "--entailment", "lexical", "--json")
    code, out, err = call(capsys, "lab", "step_credit", *options)
    assert code == 0, err
    [figures] = json.loads(out).values()
    assert {(each["data"], each["corpus"].partition("@")[0]) for each in figures.values()} == {
        ("hopland-dev", "bm25:hopland")
    }


def test_a_suite_takes_its_questions_from_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Nothing is gained from passages that say nothing; what is tested is the way there."""
    asked = tmp_path / "asked.jsonl"
    records = [
        {
            "question": f"Where was person {number} born?",
            "answers": [f"Town {number}"],
            "passages": [
                {"title": "T", "text": f"Person {number} {word}.", "is_supporting": word == "left"}
                for word in ("left", "stayed", "returned")
            ],
        }
        for number in range(3)
    ]
    asked.write_text("".join(json.dumps(record) + "\n" for record in records))
    code, out, err = call(
        capsys, "lab", "erag", "--data", str(asked), "--limit", "1", "--entailment", "lexical",
        "--json",
    )  # fmt: skip
    assert code == 0, err
    [figures] = json.loads(out).values()
    for figure in figures.values():
        assert figure["data"] == "asked"
        assert figure["reader"].startswith("hopland@")
        assert figure["corpus"].startswith("bm25:asked@")
    assert figures["erag_lists/search/right_1"]["n"] == 1
    code, out, err = call(capsys, "lab", "step_credit", "item", "--data", str(asked))
    assert (code, out) == (2, "")
    assert "step_credit: no question has two gold passages or more" in err
    assert "with asked can run: eor, erag, grogu, item, seper, workflows_by_k" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("nonsense",), "no 'nonsense' among suites: choose from "),
        (("--corpus", "hopland"), "--corpus, --qrels and --candidates go with --data FILE"),
        (("--candidates", "run.trec"), "--corpus, --qrels and --candidates go with --data FILE"),
        (("--grade", "3"), "--grade N goes with --qrels FILE"),
        (
            ("seper", "item", "--entailment", "lexical", "--entailment", "equivalence"),
            "item: takes one --entailment; several are compared by seper: hopscope lab seper "
            "--entailment A --entailment B",
        ),
        (
            ("seper", "--entailment", "lexical", "--entailment", "lexical"),
            "--entailment names lexical twice",
        ),
        (("item", "-o", "theta=1"), "nothing in these suites has that option"),
        (("seper", "--data", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--only", "nonsense"), "no 'nonsense' among suites: choose from "),
        (("--json", "--markdown"), "--json and --markdown exclude each other"),
        (("--other-reader", "hf:/nowhere", "--only", "grogu"), "/nowhere"),
        (("--limit", "0"), "--limit"),
    ],
)
def test_wrong_use_is_told_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    code, out, err = call(capsys, "lab", *options)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err
