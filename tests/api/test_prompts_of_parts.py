"""A set of prompts holds for all parts that ask a model: policies, the stages of retrievers, judges
of answers and of equal meaning, each recorded where it changes a value."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import hopscope
from hopscope.api import parts
from hopscope.lab.answer_metric import answer_metric
from hopscope.lab.budget.paths import moments
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Statement
from hopscope.runtime.prompting import loading
from hopscope.runtime.types import Question
from hopscope.tracing.entailments import judge
from hopscope.tracing.scoring.metric import Case
from hopscope.tracing.signals.draft import request
from tests.workflows.prompts.sent import PASSAGES, Recorder

OWN = "{% user %}\nMy own {{ question }}\n{% enduser %}\n"
CASE = Case(Question(text="Who directed it?"), "Tarn", PASSAGES[:1])


def folder(home: Path, *names: str, text: str = OWN) -> Path:
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / f"{name}.jinja").write_text(text, "utf-8")
    return home


def sent(reader: Recorder) -> list[str]:
    """The last message of each request, each once."""
    return list(dict.fromkeys(each["messages"][-1][1] for each in reader.sent))


def asked(prompts: Path, *, retriever: str = "hopland", policy: str = "native") -> list[str]:
    """The prompts of a run of naive RAG."""
    reader = Recorder()
    with hopscope.Session(
        reader=reader,
        retriever=retriever,
        store="sqlite://",
        workflow="naive",
        meters=(),
        prompts=prompts,
        policy=policy,
    ) as session:
        run = session.ask("Who directed it?")
        assert run.error is None, run.error
    return sent(reader)


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("policy/self_report", "self_report"),
        ("policy/draft", "entropy:0.1"),
        ("policy/draft", "maxentropy:0.1"),
    ],
)
def test_a_policy_asks_in_them(name: str, policy: str, tmp_path: Path) -> None:
    first, *_ = asked(folder(tmp_path, name), policy=policy)
    assert first == "My own Who directed it?"


def test_the_policy_grogu_asks_as_the_meter_does(tmp_path: Path) -> None:
    reader = Recorder()
    with hopscope.Session(
        reader=reader,
        store="sqlite://",
        workflow="iter_retgen",
        meters=(),
        prompts=folder(tmp_path, "meter/answer"),
        policy="grogu:-9",
    ) as session:
        session.ask("Who directed it?")
    assert "My own Who directed it?" in sent(reader)


@pytest.mark.parametrize(
    ("name", "retriever"),
    [
        ("selection/rank", "hopland@RR"),
        ("selection/select", "hopland@RR(utility,by=item)"),
        ("selection/answer", "hopland@RR(utility,by=item)"),
        ("meter/answer", "hopland@RR(utility)"),
        ("eor/summary", "hopland@CP"),
        ("compressor/text", "hopland@CP(selective_context)"),
        ("compressor/text", "hopland@CP(long_llmlingua)"),
        ("compressor/answer", "hopland@CP(long_llmlingua)"),
    ],
)
def test_a_stage_of_the_retriever_asks_in_them(name: str, retriever: str, tmp_path: Path) -> None:
    text = OWN.replace("{{ question }}", "words") if name == "compressor/text" else OWN
    own = text.splitlines()[1].replace("{{ question }}", "Who directed it?")
    assert own in asked(folder(tmp_path, name, text=text), retriever=retriever)


def test_each_run_asks_in_its_own(tmp_path: Path) -> None:
    """One retriever serves all arms of an experiment."""
    own, reader = folder(tmp_path, "selection/rank"), Recorder()
    with hopscope.Session(
        reader=reader, retriever="hopland@RR@2", store="sqlite://", workflow="naive", meters=()
    ) as session:
        session.ask("Who directed it?", options={"prompts": own})
        assert "My own Who directed it?" in sent(reader)
        reader.sent.clear()
        session.ask("Who directed it?")
        assert "My own Who directed it?" not in sent(reader)


def test_learned_policies_look_at_the_drafts_of_the_runs_prompts(tmp_path: Path) -> None:
    with hopscope.Session(
        reader=Recorder(),
        store="sqlite://",
        workflow="naive",
        meters=(),
        prompts=folder(tmp_path, "policy/draft"),
    ) as session:
        record = session.ask("Who directed it?").record
    [moment] = moments(record)
    assert request(moment, ()).prompt.messages[-1].content == "My own Who directed it?"


@pytest.mark.parametrize(
    ("metric", "name"),
    [("judge_direct", "judge/contribution"), ("judge_reduction", "judge/correctness")],
)
def test_a_judge_of_answers_asks_in_them(metric: str, name: str, tmp_path: Path) -> None:
    own = folder(tmp_path, name)
    digits = loading.load(str(own)).hash
    for given, prompts in ((f"{metric},prompts={own}", None), (metric, str(own))):
        reader = Recorder()
        built = answer_metric(given, reader=reader, entailment="lexical", prompts=prompts)
        built.score([CASE])
        assert sent(reader) == ["My own Who directed it?"]
        assert f"normaliser=none, prompt={digits})" in built.estimator
    reader = Recorder()
    built = answer_metric(metric, reader=reader, entailment="lexical", prompts="ircot-authors")
    assert "prompt=" not in built.estimator  # the set has the default one


def test_a_judge_of_equal_meaning_asks_in_them(tmp_path: Path) -> None:
    own = folder(tmp_path, "judge/equivalence")
    name = loading.load(str(own)).name
    told = parts.judging("judge:tiny", str(own))
    assert told == f"judge:tiny,prompts={name}"
    assert parts.judging(told, "ircot-authors") == told
    assert parts.judging(told, "default", anew=True) == "judge:tiny"
    assert parts.judging(told, None, anew=True) == told
    assert parts.judging("lexical", str(own)) == "lexical"
    assert parts.entailment(told).name.endswith(f",prompt={name.partition('#')[2]}")
    assert "prompt" not in parts.entailment("judge:tiny").name
    reader = Recorder()
    judge.build(reader=reader, prompts=str(own)).classify([Statement("Who?", "a", "b")])
    assert sent(reader) == ["My own Who?"]
    with pytest.raises(UsageError, match="no folder of prompts"):
        parts.entailment("judge:tiny,prompts=nowhere")


def test_a_session_and_an_experiment_hand_them_to_the_judge(tmp_path: Path) -> None:
    own = folder(tmp_path / "set", "judge/equivalence", "naive/answer")
    digits = loading.load(str(own)).hash
    questions: Sequence[hopscope.Question] = [hopscope.Question(text="Who?", answers=("Ada",))]
    with hopscope.Session(
        entailment="judge:tiny",
        store=tmp_path / "runs.db",
        workflow="naive",
        samples=1,
        meters=["seper"],
        prompts=own,
    ) as session:
        assert session.entailment.name.endswith(f",prompt={digits}")
        found = hopscope.evaluate(session, questions, name="e", threads=1)
        assert (
            f"prompts={own}#{digits}" in session.store.experiments.find("e").settings["entailment"]
        )
        assert found.progress.ok == 1
