"""The recall benchmark's arithmetic, on rankings small enough to check by hand."""

import json
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from hopscope.runtime.errors import MissingExtraError
from hopscope.runtime.types import Hit, Passage

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "recall.py"


@pytest.fixture(scope="module")
def recall() -> Iterator[ModuleType]:
    """The script, which finds what benchmarks share beside itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        yield loaded()


def loaded() -> ModuleType:
    spec = spec_from_file_location("recall", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["recall"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def given(title: str, *, supporting: bool) -> dict[str, Any]:
    return {"title": title, "text": f"About {title}.", "is_supporting": supporting}


def rows() -> list[dict[str, Any]]:
    one = [given("A", supporting=True), given("B", supporting=True), given("C", supporting=False)]
    other = [given("A", supporting=False), given("D", supporting=True)]
    return [{"question": "one?", "passages": one}, {"question": "two?", "passages": other}]


def test_passages_are_pooled_once_and_support_each_question_of_its_own(recall: ModuleType) -> None:
    pool = recall.pooled("small", [*rows(), {"question": "none?", "passages": []}])
    assert [passage.title for passage in pool.passages] == ["A", "B", "C", "D"]
    keys = {passage.title: passage.key for passage in pool.passages}
    assert [asked.supporting for asked in pool.questions] == [{keys["A"], keys["B"]}, {keys["D"]}]


def test_recall_and_all_support_by_hand(recall: ModuleType) -> None:
    """The first question finds one of two among the first two, the other among the first five; the
    second question finds nothing."""
    pool = recall.pooled("small", rows())
    a, b, c, _ = pool.passages
    filler = [Passage(title=f"X{n}", text="x") for n in range(2)]
    first = [Hit(passage=p, score=1) for p in (a, *filler, b)]
    measured = recall.measures(pool, [first, [Hit(passage=c, score=1)]])
    assert {name: values.tolist() for name, values in measured.items() if "20" not in name} == {
        "recall@2": [0.5, 0], "all@2": [0, 0], "recall@5": [1, 0], "all@5": [1, 0],
        "recall@10": [1, 0], "all@10": [1, 0], "MRR@10": [1, 0],
    }  # fmt: skip


def test_the_reciprocal_rank_is_that_of_the_first_supporting_passage(recall: ModuleType) -> None:
    """B at rank 3 and A at rank 4; a supporting passage after the tenth does not count."""
    pool = recall.pooled("small", rows())
    a, b, *_ = pool.passages
    filler = [Hit(passage=Passage(title=f"X{n}", text="x"), score=1) for n in range(10)]
    first, second = (Hit(passage=p, score=1) for p in (a, b))
    asked = pool.questions[0]
    assert recall.reciprocal(pool, [*filler[:2], second, first], asked) == pytest.approx(1 / 3)
    assert recall.reciprocal(pool, [*filler, first], asked) == 0


def test_titles_support_where_nothing_else_is_known(recall: ModuleType) -> None:
    """Two passages of one title count once."""
    passages = [Passage(id=str(n), title=title, text="x") for n, title in enumerate("AAB")]
    asked = recall.LabeledQuestion("?", frozenset("AB"))
    titled = recall.Dataset("t", tuple(passages), (asked,), by_title=True)
    hits = [Hit(passage=p, score=1) for p in passages]
    assert recall.found(titled, hits, asked, 2) == 0.5
    assert recall.found(titled, hits, asked, 3) == 1


def test_an_interval_is_a_bootstrap_over_questions(recall: ModuleType) -> None:
    """Of 100 values of which half are 1: .5 give or take 1.96 standard errors of .05."""
    found = recall.mean(np.array([0.0, 1.0] * 50))
    assert found["value"] == 0.5
    assert found["low"] == pytest.approx(0.402, abs=0.02)
    assert found["high"] == pytest.approx(0.598, abs=0.02)
    same = recall.mean(np.full(7, 0.25))
    assert same == {"value": 0.25, "low": 0.25, "high": 0.25}
    assert [recall.interval(m) for m in (found | {"low": 0.4, "high": 1.0}, same)] == [
        ".500 [.400, 1.000]", ".250 [.250, .250]",
    ]  # fmt: skip


def test_without_an_encoder_bm25_is_measured_and_the_rest_is_null_with_its_reason(
    recall: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def lacking(*args: object, **options: object) -> None:
        raise MissingExtraError("the encoder minilm without a folder", "minilm")

    monkeypatch.setattr(recall.dense, "create", lacking)
    (tmp_path / "hotpotqa_train500.jsonl").write_text("\n".join(map(json.dumps, rows())))
    monkeypatch.setattr(sys, "argv", ["recall.py", "--data", str(tmp_path), "--json"])
    recall.main()
    printed = capsys.readouterr()
    [measured] = json.loads(printed.out)["datasets"]
    assert measured["systems"]["dense"] is None
    assert "hopscope[minilm]" in measured["unmeasured"]
    best = measured["systems"]["bm25"]["recall@20"]
    assert best["minus_bm25"] == {"value": 0, "low": 0, "high": 0}
    assert "skipped 2wiki" in printed.err
