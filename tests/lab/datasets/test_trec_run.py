"""Rankings in TREC's form: their order, and what is wrong with a line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hopscope.cli.options import queries
from hopscope.lab.budget import outcomes
from hopscope.lab.budget.routing.forecast import expected
from hopscope.lab.dataset import qrels, trec_run
from hopscope.runtime.errors import CorpusError, UsageError


def read(path: Path, text: str) -> dict[str, list[str]]:
    path.write_text(text)
    return {question: [one.passage for one in of] for question, of in trec_run.read(path).items()}


def test_the_score_decides_and_of_equal_ones_the_rank(tmp_path: Path) -> None:
    """trec_eval ignores the ranks; files in any order of lines are read, as are tabs."""
    text = "2 Q0 a 1 .5 x\n1 Q0 b 3 1e1 x\n1 Q0 c 2 10.0 x\n\n1\t0\td\t1\t-3\ty\r\n1 Q0 e 0 11 x"
    found = read(tmp_path / "run", text)
    assert list(found.items()) == [("2", ["a"]), ("1", ["e", "c", "b", "d"])]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 Q0 a 2", "run, line 3: 4 columns; a TREC run has six: `QUESTION Q0 PASSAGE RANK"),
        ("1 0 a 2 3", "run, line 3: 5 columns"),
        ("1 Q0 a b 2 0.5 x", "run, line 3: 7 columns"),
        ("1 Q0 a first 0.5 x", "line 3: rank first is no whole number, or score 0.5 no number"),
        ("1 Q0 a 2 much x", "line 3: rank 2 is no whole number, or score much no number"),
        ("1 Q0 a 2 nan x", "score nan no number"),
        ("1 Q0 a 2 1e999 x", "score 1e999 no number"),
        ("1 Q0 p 2 0.5 x", "line 3: question 1 has passage p already, in line 1; leave one"),
    ],
)
def test_a_wrong_line_is_told(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(CorpusError) as caught:
        read(tmp_path / "run", f"1 Q0 p 1 2 x\n2 Q0 p 1 2 x\n{line}\n")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="is empty; a TREC run has lines `QUESTION Q0"):
        read(tmp_path / "run", "\n \n")
    (tmp_path / "run").write_bytes(b"\x1f\x8b\xff")
    with pytest.raises(CorpusError, match="cannot be read as a TREC run"):
        trec_run.read(tmp_path / "run")
    with pytest.raises(CorpusError, match="cannot be read as a TREC run"):
        trec_run.read(tmp_path / "none")


@pytest.mark.parametrize(
    ("read_", "kind"),
    [
        (trec_run.read, "a TREC run"),
        (qrels.read, "qrels"),
        (expected, "expected questions"),
        (outcomes.questions, "outcomes of arms"),
        (lambda path: queries.read((), path), "queries"),
    ],
)
def test_a_file_that_cannot_be_read_says_why_and_what_to_do(
    tmp_path: Path, read_: Callable[[Path], object], kind: str
) -> None:
    """Python's own words were printed: `[Errno 2] No such file or directory`."""
    missing, binary = tmp_path / "none", tmp_path / "binary"
    binary.write_bytes(b"ab\xff")
    for path, why in (
        (missing, "there is no such file; check the path"),
        (tmp_path, "it is a folder; name a file in it"),
        (binary, "byte 2 is not UTF-8; is it compressed, or another file?"),
    ):
        with pytest.raises(UsageError) as caught:
            read_(path)
        assert str(caught.value) == f"{path} cannot be read as {kind}: {why}"
