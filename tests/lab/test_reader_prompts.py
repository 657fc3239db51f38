"""A reader that brings its prompts along, in sessions, experiments, labels and suites: `fid`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hopscope.api import parts
from hopscope.api.session import Session
from hopscope.lab.comparison import compare
from hopscope.lab.evaluating import evaluate
from hopscope.lab.run_reports import erag
from hopscope.lab.running_suites import Suites
from hopscope.lab.suites import rivals
from hopscope.lab.validity import erag as suite
from hopscope.runtime.errors import MissingExtraError, UsageError
from hopscope.runtime.prompting import loading
from tests import models
from tests.cli.experiment_example import call

ASKED = "Who founded the company that made Grand Rovmar?"
FID, ONE = (loading.load(name).name for name in ("fid", "fid-in-prompt"))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"fid:{models.tiny_t5(tmp_path_factory.mktemp('model') / 't5')}"


@pytest.fixture
def session(reader: str) -> Iterator[Session]:
    with Session(reader=reader, store="sqlite://", meters=(), workflow="naive") as made:
        yield made


def test_naive_shows_each_passage_in_a_message_of_its_own(session: Session) -> None:
    run = session.ask(ASKED, k=3).record
    assert run.error is None
    assert run.options["prompts"] == FID
    [exchange] = run.steps[-1].exchanges
    prompt = exchange.request.prompt
    found = [hit.passage for hit in run.steps[0].ranked]
    assert len(found) == 3
    assert prompt.shown == tuple(passage.key for passage in found)
    assert [(message.role, message.content) for message in prompt.messages] == [
        ("user", f"question: {ASKED} title: {p.title} context: {p.text}") for p in found
    ]


def test_closed_book_asks_the_question_alone(session: Session) -> None:
    run = session.ask(ASKED, workflow="closed_book").record
    [exchange] = run.steps[-1].exchanges
    assert [m.content for m in exchange.request.prompt.messages] == [f"question: {ASKED}"]
    assert run.answer == exchange.generations[0].text.strip()


def test_named_prompts_precede_those_of_the_reader(reader: str, session: Session) -> None:
    run = session.ask(ASKED, k=2, options={"prompts": "fid-in-prompt"}).record
    assert run.options["prompts"] == ONE
    [message] = run.steps[-1].exchanges[0].request.prompt.messages
    first, second = (hit.passage for hit in run.steps[0].ranked)
    assert message.content == (
        f"question: {ASKED} title: {first.title} context: {first.text} "
        f"title: {second.title} context: {second.text}"
    )
    with Session(reader=reader, prompts="default", store="sqlite://", meters=()) as other:
        assert other.presets.prompts == "default"
    assert parts.prompts_of("tiny") is None
    assert parts.prompts_of(object()) is None
    with pytest.raises(UsageError, match="no 'fidd' among readers"):
        parts.prompts_of("fidd:x")


def test_a_workflow_that_converses_fails_with_the_remedy(session: Session) -> None:
    run = session.ask(ASKED, workflow="ircot")
    assert run.error is not None
    assert "take the workflow naive or closed_book" in run.error.message
    assert "other workflows need a causal model, as in hf:FOLDER" in run.error.message


def test_meters_ask_in_its_prompts(reader: str) -> None:
    with Session(reader=reader, store="sqlite://", samples=2, workflow="naive") as session:
        run = session.ask(ASKED, gold="Ada", k=2, options={"seper.max_tokens": 8})
        credits = session.store.credits(run.id)
    assert {str(each.provenance.settings["grogu.prompts"]) for each in credits} == {FID}
    [total] = [c.measurement for c in credits if (c.meter, c.rule) == ("grogu", "total")]
    assert total.value is not None, total.reason


def test_erag_labels_passages_in_its_prompts(session: Session, reader: str) -> None:
    """The answer to one passage of the run is the label of that passage in both forms."""
    run = session.ask(ASKED, gold="Ada", k=1)
    found = erag([run], "f1", reader=reader)
    assert f"prompt={FID.partition('#')[2]})" in found.estimator
    [row] = found.runs
    assert row.error is None
    [label] = row.rankings[-1].labels
    assert label.value == row.end_to_end.value


def test_an_experiment_is_compared_with_labels_of_the_reader(session: Session, reader: str) -> None:
    """As eRAG's Figure 3: the passages apart, and in one prompt."""
    workflows = ["naive:k=2", "naive:k=2,prompts=fid-in-prompt"]
    found = evaluate(session, "hopland:dev", workflows=workflows, name="both", limit=2)
    runs = [run.record for run in found.runs()]
    assert [run.options["prompts"] for run in runs] == [FID, ONE] * 2
    rows = compare("both", store=session.store, tables=["correlations"], labels=reader).to_dicts()
    assert {row["system"] for row in rows} == set(workflows)
    assert {row["questions"] for row in rows if row["measure"] == "eRAG P"} == {2}


def test_a_reader_in_a_file_brings_its_prompts_too(tmp_path: Path) -> None:
    file = tmp_path / "my_reader.py"
    file.write_text('PROMPTS = "fid-in-prompt"\n\n\ndef build(*, model: str = "") -> None: ...\n')
    assert Session(reader=str(file), store="sqlite://").presets.prompts == ONE


def test_a_second_reader_of_other_prompts_is_not_the_default(
    reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small reader of the package reads the default prompts alone."""
    made: list[str] = []
    build = parts.reader

    def noted(named: str) -> object:
        made.append(named)
        return build(named)

    monkeypatch.setattr(parts, "reader", noted)
    Suites(["erag"], reader, None, seed=0, limit=1)
    assert made == [reader]
    Suites(["erag"], parts.TINY, None, seed=0, limit=1)
    assert len(made) == 3


@pytest.mark.parametrize("chosen", [None, "fid-in-prompt"])
def test_the_suite_of_erag_reads_its_prompts(
    reader: str, chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "RESAMPLES", 10)
    running = Suites(["erag"], reader, None, seed=0, limit=1, prompts=chosen)
    assert running.given["options"] == f"prompts={ONE if chosen else FID}"
    [outcome] = running.run()
    assert not outcome.failed, outcome.figures["error"].reason
    assert outcome.figures["erag_lists/search/right_1"].value is not None


@pytest.mark.usefixtures("workers_that_start_quickly")
def test_the_command_line_takes_them_from_the_reader(
    reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = ("--db", str(tmp_path / "runs.db"))
    asked = ("eval", "hopland:dev", "-w", "naive:k=2", "-w", "closed_book", "--limit", "2")
    options = ("--name", "fused", "--meter", "none", "--threads", "2", *database)
    for _ in range(2):  # the second finds all done
        code, _, err = call(capsys, *asked, "--reader", reader, *options)
        assert code == 0, err
    code, out, err = call(
        capsys, "compare", "fused", "-t", "correlations", "--reader", reader, "--json", *database
    )
    assert code == 0, err
    assert json.loads(out)
    trec = ("export", "trec", "fused", "--out", str(tmp_path / "trec"), "--labels", "erag")
    code, _, err = call(capsys, *trec, *database)
    assert code == 0, err
    assert len((tmp_path / "trec" / "qrels").read_text().splitlines()) == 4


def test_the_suite_of_seper_asks_in_its_prompts_and_goes_without_its_judge(
    reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gold's probability was asked in the default prompts, which no `fid:` reads, and the
    judge's prompt, which it does not read either, ended the suite."""

    def missing() -> None:
        raise MissingExtraError("BERTScore", "minilm")

    monkeypatch.setattr(rivals, "_bertscore", missing)
    [outcome] = Suites(["seper"], reader, None, seed=0, limit=1).run()
    assert not outcome.failed, outcome.figures["error"].reason
    reasons = [
        outcome.figures[f"single_passage/{metric}/r"].reason or ""
        for metric in (*rivals.GOLD, rivals.JUDGE)
    ]
    assert ["reads each passage alone" in reason for reason in reasons] == [False, False, True]
