"""Questions that a worker is at at the same time end as they would one after the other."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hopscope.api.presets import Presets
from hopscope.api.spending import Spending
from hopscope.cli.main import main
from hopscope.lab.experiments import item_runner, planning
from hopscope.lab.experiments.workers import ItemResult
from hopscope.runtime.types import Run
from hopscope.store.experiments.records import ClaimedItem
from hopscope.store.store import Store
from tests.models import tiny_llama

QUESTIONS = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader, an index and questions."""
    made = tmp_path_factory.mktemp("threads")
    tiny_llama(made / "model", max_position_embeddings=1024)
    passages = [{"id": str(i), "title": f"Film {i}", "text": f"By Bruno {i}."} for i in range(9)]
    questions = [
        {"id": str(i), "question": f"Who directed film {i}?", "golden_answers": [f"Bruno {i}"]}
        for i in range(QUESTIONS)
    ]
    for name, rows in (("corpus", passages), ("asked", questions)):
        (made / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    call("index", "build", str(made / "corpus.jsonl"), "--out", str(made / "index"))
    return made


def call(*arguments: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    assert not end.value.code


def resolved(folder: Path) -> planning.ExperimentPlan:
    return planning.resolve(
        str(folder / "asked.jsonl"),
        named=["naive:max_tokens=8"],
        options={"seper.max_tokens": "6", "grogu.max_tokens": "6"},
        name="films",
        corpus=str(folder / "index"),
        k=2,
        reader=f"hf:{folder / 'model'}",
        entailment="lexical",
        meters=("seper", "grogu"),
        rules=("trajectory",),
        samples=3,
        seed=1,
        order=None,
        db=None,
        limit=None,
        sample_ids=(),
        deterministic=False,
        spend=Spending(),
        presets=Presets(),
    )


def done(folder: Path, threads: int) -> list[ItemResult]:
    asked = resolved(folder)
    items = [
        ClaimedItem(entry=entry, arm=asked.arms[0], position=place)
        for place, entry in enumerate(asked.entries)
    ]
    opening = item_runner.ItemRunnerFactory(asked.settings, asked.name, asked.arms, threads)
    with opening() as made, ThreadPoolExecutor(threads) as pool:
        return list(pool.map(made.do, items))


def said(run: Run | None) -> Sequence[str]:
    assert run is not None
    return [g.text for step in run.steps for e in step.exchanges for g in e.generations]


def test_runs_and_credits_are_those_of_one_after_the_other(folder: Path) -> None:
    together, alone = done(folder, 3), done(folder, 1)
    assert len(together) == QUESTIONS
    for one, other in zip(together, alone, strict=True):
        assert (one.error, said(one.run)) == (None, said(other.run))
        for ours, theirs in zip(one.credits, other.credits, strict=True):
            assert (ours.meter, ours.rule, ours.step) == (theirs.meter, theirs.rule, theirs.step)
            assert ours.measurement.value == pytest.approx(theirs.measurement.value, abs=1e-4)
        assert one.run is not None
        assert other.run is not None
        assert one.run.usage == other.run.usage


@pytest.mark.slow
def test_eval_takes_threads(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what is left is estimated to take as long as with the threads of before."""
    database = tmp_path / "runs.db"
    asked = [
        "eval", str(folder / "asked.jsonl"), "-w", "naive", "--reader", f"hf:{folder / 'model'}",
        "--corpus", str(folder / "index"), "--meter", "seper", "--rule", "trajectory",
        "--samples", "2", "--name", "films", "--db", str(database),
    ]  # fmt: skip
    call(*asked, "--limit", "3", "--threads", "3")
    with Store.open(database) as store:
        items = store.experiments.items("films")
        assert [item.status for item in items] == ["ok"] * 3
        [session] = store.experiments.worker_sessions("films")
        assert session.environment["hardware"]["questions_per_worker"] == 3
        measured = store.experiments.appraisals("films")
        seconds = sum(a.seconds for found in measured.values() for a in found)
        seconds += sum(item.outcome.seconds for item in items if item.outcome)

    capsys.readouterr()
    call(*asked, "--dry-run", "--json")
    [estimate] = json.loads(capsys.readouterr().out)["estimates"]
    assert (estimate["items"], estimate["n"]) == (QUESTIONS - 3, 3)
    assert estimate["seconds"] == pytest.approx(seconds / 3)
