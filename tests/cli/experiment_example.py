"""An experiment of real runs of the embedded world, and how tests call the command line."""

from pathlib import Path

import pytest

from hopscope.api import parts
from hopscope.cli.main import main
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Credit, Measurement, Provenance, Run
from hopscope.store.experiments.records import Arm, DatasetEntry, Experiment
from hopscope.store.store import Store
from tests.fakes import NOW

WORKFLOWS = ("closed_book", "naive")
QUESTIONS = 3


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command."""
    try:
        main(list(arguments))
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def credits_of(found: Run, value: float) -> list[Credit]:
    provenance = Provenance(reader=found.reader)
    named = [(None, "level", 0.25), (None, "total", value)]
    named += [(step.index, "trajectory", value) for step in found.steps if step.kind == "retrieve"]
    return [
        Credit(
            run_id=found.id,
            step=step,
            rule=rule,
            meter="seper",
            measurement=Measurement(value=worth),
            provenance=provenance,
        )
        for step, rule, worth in named
    ]


def make_runs() -> list[Run]:
    """Each question by each workflow, in the order of a plan."""
    deps = Deps(reader=parts.reader("tiny"), retriever=parts.corpus("hopland"))
    asked = [row.question for row in hopland.questions("dev")[:QUESTIONS]]
    return [run(parts.workflow(w, {}), question, deps) for question in asked for w in WORKFLOWS]


def fill(file: Path, runs: list[Run]) -> None:
    """Two experiments: `done`, and `begun`, of whose items none is done. The total of naive RAG's
    run at position i is i / 8, and so is what its retrieval made of it."""
    with Store.open(file) as store:
        for name in ("done", "begun"):
            experiment = Experiment(
                name=name,
                settings={"data": "hopland:dev", "reader": "tiny", "corpus": "hopland"},
                reader=runs[0].reader,
                retriever=runs[0].retriever,
                entailment="lexical",
                seed=0,
                fingerprint="f",
                created=NOW,
                arms=tuple(
                    Arm(label=w, workflow=w, settings={"options": {"k": 5}}) for w in WORKFLOWS
                ),
            )
            entries = [DatasetEntry(question=found.question, hops=2) for found in runs[::2]]
            store.experiments.add(experiment, entries)
        session = store.experiments.begin_session("done", owner="here", environment={})
        for claimed in store.experiments.claim(session, 100):
            found = runs[claimed.position]
            worth = 0.125 * claimed.position if found.workflow == "naive" else 0.0
            credits = credits_of(found, worth)
            store.experiments.complete(session, claimed, found, credits=credits)
