"""Learning the weights of EoR's voter."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hopscope.api import parts
from hopscope.cli.main import main
from hopscope.lab.eor import fitting
from hopscope.lab.eor.fitting import Votes, accuracy, fit, questions, search
from hopscope.runtime.corpora import hopland
from hopscope.runtime.errors import CorpusError, HopscopeError, ReaderError, UsageError
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Measurement,
    Passage,
    Question,
    Run,
    Scored,
    ScoreRequest,
)
from hopscope.tracing.answer_metrics import contains
from hopscope.tracing.scoring.metric import Case
from hopscope.workflows import eor
from hopscope.workflows.eor import weights_file
from hopscope.workflows.eor.voting import Floats, VotingRule
from tests.probes import Speaker, script
from tests.talk import ScriptedRetriever

POOL = ("ReFree", "Wiki@1", "Wiki@2", "Wiki@3")
FOUND = [Passage(id=str(i), title=f"T{i}", text=f"Text {i}.") for i in range(1, 4)]


def test_vector_29() -> None:
    def objective(point: Floats) -> float:
        x, y = point
        return float(1 - (x - 0.4) ** 2 - (y - 0.9) ** 2)

    found = search(objective, [np.array([0.1, 0.1])], evaluations=400)
    assert found.point == pytest.approx([0.4, 0.6], abs=1e-4)


@pytest.mark.parametrize("starts", [1, 3])
def test_a_search_tries_no_more_than_it_may_and_never_leaves_the_bounds(starts: int) -> None:
    met: list[Floats] = []

    def objective(point: Floats) -> float:
        met.append(point.copy())
        return float(point.sum() > 0.9)

    found = search(objective, [np.full(3, 0.2)] * starts, evaluations=60)
    assert found.evaluations == len(met) <= 60
    assert all((point >= 0).all() and (point <= 0.6).all() for point in met)
    assert found.value == 1


def test_the_best_that_was_met_is_kept_not_the_last() -> None:
    values = iter([0.0, 5.0, *[1.0] * 100])
    found = search(lambda point: next(values), [np.full(2, 0.3)], evaluations=50)
    assert found.value == 5


class ScriptedJudge:
    """A graded metric by hand."""

    name = estimator = "scripted"
    binary = False

    def __init__(self, values: dict[str, float]) -> None:
        self._values = values

    def score(self, cases: Sequence[Case]) -> list[Measurement]:
        return [Measurement(value=self._values.get(case.answer or "", 0.0)) for case in cases]


def runs(*answers: tuple[str, ...], gold: str = "right") -> list[Run]:
    """One question for each row of answers, in the order of the pool."""
    built = Workflow("eor", eor.build(pool=",".join(POOL), similarities="exact"), {})
    done = []
    for row in answers:
        question = Question(text="Who?", answers=(gold,))
        retriever = ScriptedRetriever(lambda query: FOUND)
        done.append(run(built, question, Deps(reader=Speaker(script(row)), retriever=retriever)))
    return done


ALWAYS_RIGHT_FIRST = [("right", "b", "b", "b"), ("right", "c", "d", "c"), ("right", "x", "y", "z")]


def test_it_learns_whom_to_trust() -> None:
    """The first is always right and always outvoted."""
    done = runs(*ALWAYS_RIGHT_FIRST)
    assert [result.answer for result in done] == ["b", "c", "right"]
    learned = fit(done, VotingRule(), seed=1)
    assert learned.pool == POOL
    assert learned.learned["accuracy"] == learned.learned["oracle"] == 1
    assert learned.retrievers[0] > 0.1
    assert max(learned.retrievers) <= 0.6
    assert learned.learned["alone"] == {"ReFree": 1, "Wiki@1": 0, "Wiki@2": 0, "Wiki@3": 0}
    assert learned == fit(runs(*ALWAYS_RIGHT_FIRST), VotingRule(), seed=1)


def test_accuracy_is_that_of_the_votes_the_workflow_would_hold() -> None:
    names, cast = fitting.votes(runs(*ALWAYS_RIGHT_FIRST))
    assert names == ("exact",)
    assert accuracy(cast, np.array([1, 1, 1, 1, 1.0]), VotingRule()) == pytest.approx(1 / 3)
    assert accuracy(cast, np.array([1, 1, 0, 0, 0.0]), VotingRule()) == 1


def test_it_learns_by_any_metric_and_by_the_mean_of_several() -> None:
    """Weights could be learned by exact match only; the paper names BEM and the mean, too."""
    done = runs(("rightly", "b", "b", "right so"), ("rightly", "c", "c", "d"))
    judge = ScriptedJudge({"rightly": 1.0, "right so": 0.5})
    by_judge = fitting.votes(done, [judge])[1].right
    assert by_judge.tolist() == [[1, 0, 0, 0.5], [1, 0, 0, 0]]
    both = fitting.votes(done, [contains.build(), judge])[1].right
    assert both.tolist() == [[0.5, 0, 0, 0.75], [0.5, 0, 0, 0]]
    learned = fit(done, VotingRule(), metrics=[judge], seed=1)
    assert (learned.learned["accuracy"], learned.learned["metric"]) == (1, "scripted")
    exact = fit(done, VotingRule(), seed=1).learned
    assert (exact["oracle"], exact["questions"]) == (0, 2)


def test_a_question_that_cannot_be_judged_teaches_nothing() -> None:
    done = [*runs(("right", "b", "b", "b")), *runs(("right", "b", "b", "b"), gold="The")]
    assert fit(done, VotingRule(), seed=1).learned["questions"] == 1
    with pytest.raises(UsageError, match=r"no answer can be judged \(no gold answer is left"):
        fit(done[1:], VotingRule())


def test_starting_points_are_as_many_as_asked_for() -> None:
    cast = Votes(np.zeros((2, 1, 3, 3)), np.zeros((2, 3)))
    for restarts in (1, 2, 7):
        points = fitting.starting_points(cast, restarts=restarts, seed=0)
        assert len(points) == restarts
        assert all(point.shape == (4,) and np.isfinite(point).all() for point in points)


def test_a_failed_run_is_no_vote() -> None:
    failed = runs(("a", "b"))  # the script runs out
    with pytest.raises(HopscopeError, match="question 'Who\\?': the script has no reply left"):
        fit(failed, VotingRule())


def test_without_a_similarity_there_is_nothing_to_learn() -> None:
    with pytest.raises(UsageError, match="no weights can be learned"):
        fit([], VotingRule())


def test_questions_are_read_from_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(
        '{"id": 7, "question": "a?", "golden_answers": ["x"]}\n{"query": "b?", "answer": "y"}\n'
    )
    assert questions(file) == [
        Question(id="7", text="a?", answers=("x",)),
        Question(id="1", text="b?", answers=("y",)),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"answer": "y"}', "line 1: needs a text"),
        ('{"question": " ", "answer": "y"}', "line 1: needs a text"),
        ('{"question": "a?"}', "line 1: needs answers"),
        ('{"question": "a?", "answers": []}', "line 1: needs answers"),
        ('{"question": "a?", "answers": [1]}', "line 1: needs answers"),
    ],
)
def test_a_broken_question_is_told_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(line)
    with pytest.raises(CorpusError, match=message):
        questions(file)


def test_the_command_writes_a_file_that_run_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "w.json"
    options = ["-o", "pool=Wiki@1,ReFree", "-o", "depth=3", "-o", "max_tokens=4"]
    learn = ["eor", "fit", "hopland", "--out", str(file), "--limit", "2", "--evaluations", "20"]
    learn += ["-m", "exact_match", "-m", "equivalence", "--metric-entailment", "equivalence"]
    with pytest.raises(SystemExit) as done:
        main([*learn, *options])
    assert done.value.code == 0
    printed = capsys.readouterr()
    assert "Wiki@1" in printed.out
    assert "exact_match + equivalence: " in printed.err
    told = json.loads(file.read_text())
    assert (told["version"], told["pool"]) == (1, ["Wiki@1", "ReFree"])
    assert told["learned"]["questions"] == 2
    sample = told["learned"]["sample"]
    rows = {row.id: (row.hops, row.kind) for row in hopland.questions("dev")}
    assert (sample["order"], sample["limit"], sample["of"]) == ("stratified", 2, len(rows))
    assert len({rows[id] for id in sample["questions"]}) == 2, "the first of the file are alike"
    assert "2 of 1,031 questions, drawn at random" in printed.err
    assert "equivalence(entailment=equivalence:" in told["learned"]["metric"]
    assert eor.build(pool="Wiki@1,ReFree", weights=str(file))
    with pytest.raises(UsageError, match=r"for the pool Wiki@1,ReFree, not for Wiki@5"):
        eor.build(weights=str(file))
    assert weights_file.load(file, ("Wiki@1", "ReFree"), VotingRule()).rule["pooling"] == "mean"


class Breaking:
    """Answers so many requests and then raises."""

    name = "breaking"

    def __init__(self, good: int, then: BaseException) -> None:
        self._good, self._then = good, then

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        self._good -= 1
        if self._good < 0:
            raise self._then
        return [[Generation(text="right")] for _ in requests]

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        raise AssertionError("EoR does not score")


@pytest.mark.parametrize(
    ("good", "then", "code", "learned"),
    [
        (2, ReaderError("broken"), 1, 1),
        (2, KeyboardInterrupt(), 130, 1),
        (0, ReaderError("broken"), 1, None),
        (0, KeyboardInterrupt(), 130, None),
    ],
)
def test_what_was_answered_is_not_lost(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    good: int,
    then: BaseException,
    code: int,
    learned: int | None,
) -> None:
    """One question that failed, or Ctrl-C, once threw away all that came before."""
    monkeypatch.setattr(parts, "reader", lambda spec: Breaking(good, then))
    asked, file = tmp_path / "q.jsonl", tmp_path / "w.json"
    asked.write_text('{"question": "a?", "answer": "right"}\n{"question": "b?", "answer": "x"}\n')
    options = ["-o", "pool=ReFree,Wiki@1", "-o", "similarities=exact", "--evaluations", "20"]
    with pytest.raises(SystemExit) as done:
        main(["eor", "fit", str(asked), "--out", str(file), *options])
    assert done.value.code == code
    assert f"answered {learned or 0} of 2 questions" in capsys.readouterr().err
    assert file.is_file() == (learned is not None)
    if learned is not None:
        assert json.loads(file.read_text())["learned"]["questions"] == learned


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "weights=x"], "leave -o weights out"),
        (["-o", "pool=Wiki@"], "character 6"),
        (["-o", "nothing=1"], "unknown option"),
    ],
)
def test_the_command_used_wrongly_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as done:
        main(["eor", "fit", "hopland", "--out", str(tmp_path / "w.json"), *arguments])
    assert done.value.code == 2
    assert message in capsys.readouterr().err
