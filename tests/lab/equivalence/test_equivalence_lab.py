"""Evaluating entailments on human judgements: the reader of the files, the figures, the command."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from hopscope.cli.main import main
from hopscope.lab.equivalence.belief_rules import Rule, chances
from hopscope.lab.equivalence.calibrate import fit_curve
from hopscope.lab.equivalence.data import Judged, judgements, part_of
from hopscope.lab.equivalence.evaluate import LexicalMatch, evaluate
from hopscope.lab.equivalence.reliability import reliability
from hopscope.lab.equivalence.train import examples, laid_out
from hopscope.runtime.errors import CorpusError
from hopscope.runtime.types import Question
from hopscope.tracing.entailments import equivalence, lexical
from hopscope.tracing.entailments.equivalence.features import NAMES
from hopscope.tracing.entailments.equivalence.trees import TreeEnsemble
from hopscope.tracing.meters import seper
from hopscope.tracing.scoring.correctness import Answered, correctness
from tests.fakes import ScriptedReader, reply

FIGURES = {
    "fid": (94.7, 91.8),
    "gpt35": (94.8, 92.3),
    "chatgpt": (95.2, 92.3),
    "gpt4": (94.8, 91.1),
    "newbing": (94.1, 89.8),
}
"""Lexical match in percent as published: F1 and accuracy."""


def record(**changed: object) -> dict[str, object]:
    found: dict[str, object] = {
        "question": "Who directed Alba?",
        "golden_answer": "Bruno Costa/B. Costa",
        "answer_one": "Bruno Costa",
        "judge_one": True,
        "answer_two": "It was Ana Silva.",
        "judge_two": False,
        "improper": False,
    }
    return {key: value for key, value in (found | changed).items() if value is not None}


def write(folder: Path, *records: object, lines: bool = False) -> Path:
    path = folder / "judged.json"
    texts = [json.dumps(value) for value in records]
    path.write_text("\n".join(texts) if lines else "[" + ",\n".join(texts) + "]")
    return path


@pytest.mark.parametrize("lines", [True, False])
def test_records_are_read(tmp_path: Path, lines: bool) -> None:
    improper = record(improper=True, judge_one=None)
    [found] = judgements(write(tmp_path, record(), improper, lines=lines))
    assert found.golds == ("Bruno Costa", "B. Costa")
    assert found.answers == {"one": "Bruno Costa", "two": "It was Ana Silva."}
    assert found.right == {"one": True, "two": False}


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (record(question=None), "record 2 needs a text under 'question'"),
        (record(golden_answer=["a"]), "record 2 needs a text under 'golden_answer'"),
        (record(answer_two=None), "record 2 needs a text under 'answer_two'"),
        (record(judge_two="yes"), "record 2 needs true or false under 'judge_two'"),
        (record(improper=0), "record 2 needs true or false under 'improper'"),
        (3, "a JSON object is needed here, not int"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, broken: object, said: str) -> None:
    path = write(tmp_path, record(), broken, lines=True)
    with pytest.raises(CorpusError, match=f"line 2: {said}"):
        judgements(path)


def test_files_without_judgements_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="has no answer_SYSTEM"):
        judgements(write(tmp_path, {"question": "Who?", "golden_answer": "x"}))
    with pytest.raises(CorpusError, match="holds no records"):
        judgements(write(tmp_path))
    with pytest.raises(CorpusError, match="holds no proper questions"):
        judgements(write(tmp_path, record(improper=True)))


def test_a_system_cannot_be_called_as_the_mean_is(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="has a system called 'mean'"):
        judgements(write(tmp_path, record(answer_mean="x", judge_mean=True)))


def test_the_halves_are_halves_and_share_no_question(tmp_path: Path) -> None:
    path = write(tmp_path, *(record(question=f"Who made film {i}?") for i in range(400)))
    parts = [{row.question for row in judgements(path, part)} for part in ("train", "held-out")]
    assert not parts[0] & parts[1]
    assert len(parts[0] | parts[1]) == 400
    assert 150 < len(parts[0]) < 250
    assert part_of("Who made film 1?") == part_of("Who made film 1?")


def judged(*rights: tuple[bool, bool]) -> list[Judged]:
    """Questions to which system `a` answers the gold and `b` something else, with judgements."""
    return [
        Judged(
            record=1,
            question=f"Question {i}?",
            golds=("gold",),
            answers={"a": "gold", "b": "other"},
            right={"a": a, "b": b},
        )
        for i, (a, b) in enumerate(rights)
    ]


def test_figures_by_hand() -> None:
    """Of a: 3 found, of which 2 right: P 2/3, R 1, F1 .8. Of b: nothing found, 1 right."""
    found = evaluate(judged((True, False), (True, True), (False, False)), LexicalMatch())
    assert found.systems["a"].f1 == pytest.approx(80)
    assert found.systems["a"].accuracy == pytest.approx(200 / 3)
    assert found.systems["b"].f1 == 0
    assert found.systems["b"].accuracy == pytest.approx(200 / 3)
    assert found.mean.f1 == pytest.approx(40)
    assert (found.systems["a"].n, found.mean.n) == (3, 6)
    assert {(m.system, m.answered.question) for m in found.mistakes} == {
        ("a", "Question 2?"),
        ("b", "Question 1?"),
    }


def test_nothing_right_and_nothing_found_agree() -> None:
    found = evaluate(judged((True, False)), LexicalMatch()).systems["b"]
    assert (found.f1, found.accuracy) == (100, 100)


def test_intervals_cover_the_truth() -> None:
    """Of 60 samples of 80 questions with accuracy .8, 95 % intervals hold it in 50 or more; by
    chance fewer in less than one of 10,000 seeds."""
    random = np.random.default_rng(1)
    inside = 0
    for seed in range(60):
        rights = [(bool(a), False) for a in random.random(80) < 0.8]
        low, high = (
            evaluate(judged(*rights), LexicalMatch(), resamples=300, seed=seed)
            .systems["a"]
            .accuracy_interval
        )
        inside += low <= 80 <= high
    assert 50 <= inside <= 60
    assert low < high


def test_the_seed_fixes_the_interval() -> None:
    rows = judged(*[(i % 3 > 0, i % 5 == 0) for i in range(50)])
    one, same, other = (evaluate(rows, LexicalMatch(), seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one.mean.f1_interval != other.mean.f1_interval


def test_lexical_match_is_a_substring_and_an_empty_gold_matches_nothing() -> None:
    match = LexicalMatch()
    rows = [
        Answered("?", ("art",), "Cartography"),
        Answered("?", ("The",), "the answer"),
        Answered("?", (".", "Lisbon"), "In Lisbon!"),
    ]
    assert match.correctness(rows) == [1, 0, 1]


def test_an_answer_is_as_right_as_the_gold_it_agrees_with_best() -> None:
    rows = [
        Answered("?", ("Porto", "Lisbon"), "in Lisbon"),
        Answered("?", ("", "  "), "in Lisbon"),
        Answered("?", ("Porto",), "Porto"),
    ]
    assert correctness(lexical.build(), rows) == [0.9, 0, 1]


@pytest.mark.parametrize(("rule", "kind"), [("seper", "soft"), ("seper_hard", "hard")])
def test_belief_rules_are_those_of_seper_for_one_reply(
    rule: Rule, kind: Literal["soft", "hard"]
) -> None:
    """The meter, with a reader whose only reply is the answer, gives the same."""
    model = equivalence.build()
    for answer in ("Costa", "Bruno Kosta", "Ana Silva", "the director, Mr Costa", "I do not know"):
        golds = ("Bruno Costa", "B. Costa")
        meter = seper.build(
            ScriptedReader([[reply(answer, [-0.1])]]), model, kind=kind, samples=1, temperature=0
        )
        [measured] = meter.measure(Question(text="Who directed Alba?", answers=golds), [()])
        assert measured.value is not None
        answered = [Answered("Who directed Alba?", golds, answer)]
        assert chances(model, answered, rule) == [pytest.approx(measured.value)]
    assert chances(model, [Answered("Who?", ("", " "), "x")], rule) == [0]


def test_reliability_counts_answers_in_bins() -> None:
    """By hand: .02 and .04 with one right of two, .62 right, 1.0 right."""
    values = np.array([[0.02, 0.62], [0.04, 1.0]])
    right = np.array([[True, True], [False, True]])
    found = reliability(values, right, np.array([[0, 1], [0, 0]]))
    assert [(each.low, each.high, each.n) for each in found.bins] == [
        (0, 0.05, 2),
        (0.6, 0.7, 1),
        (0.95, 1, 1),
    ]
    assert [each.mean for each in found.bins] == pytest.approx([0.03, 0.62, 1])
    assert [each.right for each in found.bins] == [0.5, 1, 1]
    assert found.error == pytest.approx((2 * 0.47 + 0.38) / 4)
    assert found.bins[0].interval == pytest.approx((0.5125, 0.9875))


def test_a_curve_mends_probabilities_that_are_too_low() -> None:
    """Of 20,000 events with log-odds 1 higher than told, the curve finds that nearly."""
    pytest.importorskip("sklearn")
    random = np.random.default_rng(3)
    told = random.normal(0, 2, 20_000)
    curve = fit_curve(told, random.random(20_000) < 1 / (1 + np.exp(-told - 1)))
    assert curve(np.array([-2.0, 0, 2])) == pytest.approx([-1, 1, 3], abs=0.5)
    assert (np.diff(curve.before) > 0).all()
    assert (np.diff(curve.after) > 0).all()


def test_examples_show_gold_and_answer_either_way_round() -> None:
    rows = list(examples([*judged((True, False))]))
    kinds = {(row.kind, row.system, row.right) for row in rows}
    assert {("golds", "a", True), ("turned", "b", False), ("answers", "a", False)} <= kinds
    assert ("answers", "a", True) not in kinds


def test_examples_do_not_depend_on_the_order_of_sets(tmp_path: Path) -> None:
    """A number was once chosen from a set of strings, whose order changes with each process, so
    that no two models were the same."""
    answer = "From 1812 to 1815, with 4321 men and 9876 horses"
    path = write(tmp_path, record(golden_answer=answer, answer_one=answer, judge_two=True))
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from hopscope.lab.equivalence import data, train\n"
        "print(list(train.examples(data.judgements(Path(sys.argv[1])))))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "123"
    ]
    assert "made_up" in runs[0]
    assert len(set(runs)) == 1


def test_trees_are_laid_out_as_lightgbm_walks_them() -> None:
    """A tree that asks twice on one side; reasons are the changes of the expected value."""
    leaf: Any = {"leaf_count": 1}
    root = {
        "split_feature": 0,
        "threshold": 0.5,
        "left_child": {**leaf, "leaf_value": -1.0, "leaf_count": 2},
        "right_child": {
            "split_feature": 1,
            "threshold": 2.0,
            "left_child": {**leaf, "leaf_value": 1.0},
            "right_child": {**leaf, "leaf_value": 4.0},
        },
    }
    trees = laid_out([root, {"leaf_value": 0.25, "leaf_count": 4}])
    rows = np.zeros((4, len(NAMES)))
    rows[:, :2] = [(0.5, 9), (0.6, 2), (0.6, 2.1), (-5, -5)]
    assert TreeEnsemble(trees).logits(rows).tolist() == [-0.75, 1.25, 4.25, -0.75]
    bias, added = trees.contributions(rows[2])
    # Expected at the root (2 * -1 + 1 + 4) / 4, on the right side (1 + 4) / 2.
    assert bias == 0.75 + 0.25
    assert added[:2].tolist() == [2.5 - 0.75, 4 - 2.5]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        main(["lab", "equivalence", *arguments])
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_prints_each_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, *(record(question=f"Who directed film {i}?") for i in range(20)))
    for entailment in ("equivalence", "lexical", "lexical-rules"):
        code, out, err = call(capsys, str(path), "--entailment", entailment, "--json")
        assert code == 0, err
        found = json.loads(out)
        assert set(found) == {"one", "two", "mean"}
        assert (found["mean"]["f1"], found["mean"]["n"], found["mean"]["left_out"]) == (100, 40, [])
        assert found["one"]["n"] == 20
        assert found["one"]["f1"] == found["one"]["accuracy"] == 100
        assert found["one"]["f1_interval"] == [100, 100]
        assert found["one"]["rule"] == "entails"
        assert set(found["mean"]["calibration"]) == {"expected_error", "bins"}
    code, out, _ = call(capsys, str(path), "--entailment", "lexical")
    assert [line.split()[0] for line in out.splitlines()] == ["one", "two", "mean"]


def test_a_metric_judges_by_a_threshold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A score of 1 is not above a threshold of 1."""
    path = str(write(tmp_path, *(record(question=f"Who directed film {i}?") for i in range(20))))
    for threshold, f1 in (("0.1", 100), ("1", 0)):
        code, out, err = call(capsys, path, "--metric", "f1", "--threshold", threshold, "--json")
        assert (code, "trained on half" in err) == (0, False), err
        found = json.loads(out)["one"]
        assert (found["f1"], found["threshold"]) == (f1, float(threshold))


def test_rules_and_bins_are_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, *(record(question=f"Who directed film {i}?") for i in range(20))))
    for rule in ("seper", "seper_hard"):
        code, out, err = call(capsys, path, "--rule", rule, "--json")
        assert code == 0, err
        assert json.loads(out)["mean"]["rule"] == rule
        assert json.loads(out)["mean"]["f1"] == 100
    code, out, _ = call(capsys, path, "--rule", "seper_hard", "--bins")
    assert "0.00 to 0.05        20   0.000  0.000  [0.000, 0.000]" in out
    assert "0.95 to 1.00        20   1.000  1.000  [1.000, 1.000]" in out
    assert out.splitlines()[-1] == "expected calibration error 0.0000"


def test_records_with_nulls_are_left_out_counted_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVOUNA's published file of Natural Questions was refused for two null answers."""
    mute = {**record(question="Who was it?"), "answer_two": None, "judge_two": None}
    aside = {**record(improper=True), "judge_one": None}
    path = write(tmp_path, record(), mute, aside, {**record(), "question": None}, lines=True)
    code, out, err = call(capsys, str(path), "--entailment", "lexical", "--json")
    assert code == 0, err
    assert (
        "2 records left out because of null fields: record 2 (answer_two, judge_two), "
        "record 4 (question)"
    ) in " ".join(err.split())
    found = json.loads(out)
    assert (found["one"]["n"], found["mean"]["n"]) == (1, 2)
    assert found["mean"]["left_out"] == [
        {"record": 2, "line": 2, "question": "Who was it?", "fields": ["answer_two", "judge_two"]},
        {"record": 4, "line": 4, "question": None, "fields": ["question"]},
    ]
    told: list[int] = []
    for part in ("train", "held-out"):
        try:
            judgements(path, part, tell=lambda each: told.append(each.record))
        except CorpusError:
            assert part != part_of("Who directed Alba?")
    assert sorted(told) == [2, 4, 4]  # of one part, and of either where the question is not known


def test_mistakes_are_shown_with_what_spoke_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, record(), record(question="Who else?", judge_two=True))
    code, out, err = call(capsys, str(path), "--mistakes", "1", "--json")
    assert code == 0, err
    assert json.loads(out)["one"]["mistakes"] == []
    [wrong] = json.loads(out)["two"]["mistakes"]
    assert wrong["answer"] == "It was Ana Silva."
    assert wrong["right"] is True
    assert wrong["probability"] < 0.5
    assert {reason["feature"] for reason in wrong["reasons"]} <= set(NAMES)
    assert len(wrong["reasons"]) == 5
    out = call(capsys, str(path), "--mistakes", "1")[1]
    assert "people say right" in out
    assert "because" in out


def test_wrong_use_exits_2_with_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = str(write(tmp_path, record()))
    broken = tmp_path / "broken.json"
    broken.write_text('[{"question": 1, "answer_a": "x"}]')
    for arguments, said in [
        (["/nowhere.json"], "/nowhere.json does not exist"),
        ([str(tmp_path)], "is a folder"),
        ([str(broken)], "record 1 needs a text under 'question'"),
        ([good, "--entailment", "wrong"], "choose from bem, equivalence, judge, lexical, nli"),
        ([good, "--entailment", "judge:"], "judge needs reader: give judge:READER"),
        ([good, "--entailment", "equivalence:x"], "takes nothing after its name"),
        ([good, "--limit", "0"], "limit"),
        ([good, "--entailment", "lexical", "--rule", "seper"], "--rule seper needs an entailment"),
        ([good, "--metric", "f1", "--rule", "seper"], "--rule seper needs an entailment"),
        ([good, "--metric", "wrong"], "choose from bertscore, bleu"),
    ]:
        code, out, err = call(capsys, *arguments)
        assert code == 2, (arguments, err)
        assert said in " ".join(err.split())
        assert "Traceback" not in err
        assert out == ""


def test_a_limit_takes_a_sample_and_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first of a file were judged, which may be of one kind."""
    path = write(tmp_path, *(record(question=f"Who directed film {i}?") for i in range(30)))

    def taken(*options: str) -> tuple[list[int], str]:
        code, out, err = call(capsys, str(path), "--entailment", "lexical", "--json", *options)
        assert code == 0, err
        found = json.loads(out)
        [sample] = {json.dumps(agreement["sample"]) for agreement in found.values()}
        told = json.loads(sample)
        if told is None:
            return [], err
        assert (told["limit"], told["of"]) == (found["one"]["n"], 30)
        return told["questions"], err

    drawn, err = taken("--limit", "6")
    assert "6 of 30 questions, drawn at random (--order stratified)" in err
    assert drawn != sorted(drawn)
    assert len(set(drawn)) == 6
    assert taken("--limit", "12", "--seed", "5")[0][:6] == drawn
    assert taken("--limit", "6", "--order", "file")[0] == [1, 2, 3, 4, 5, 6]
    assert taken() == ([], "")


def test_a_judge_is_any_reader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, record())
    code, out, err = call(capsys, str(path), "--entailment", "judge:tiny", "--json")
    assert code == 0, err
    assert json.loads(out)["one"]["accuracy"] == 100


@pytest.fixture
def evouna(research_data: Callable[[str], Path]) -> Path:
    """EVOUNA's TriviaQA, which is not part of this repository."""
    return research_data("evouna_tq.json")


def test_lexical_match_meets_the_published_figures(evouna: Path) -> None:
    found = evaluate(judgements(evouna), LexicalMatch(), resamples=100).systems
    for system, (f1, right) in FIGURES.items():
        assert found[system].f1 == pytest.approx(f1, abs=0.1)
        assert found[system].accuracy == pytest.approx(right, abs=0.1)


def test_the_embedded_model_on_the_questions_it_has_not_seen(evouna: Path) -> None:
    found = evaluate(judgements(evouna, "held-out"), equivalence.build(), resamples=100)
    assert found.mean.f1 >= 98.2
    floors = {"fid": 97.1, "gpt35": 97.0, "chatgpt": 97.4, "gpt4": 98.0, "newbing": 95.7}
    assert all(found.systems[system].f1 >= floor for system, floor in floors.items())
