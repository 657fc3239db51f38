"""A stored experiment to push: two questions, each with two retrievals of three passages, credits
of steps and passages, and a credit that was not measured."""

from pathlib import Path

from hopscope.runtime.types import Credit, Measurement, Run
from hopscope.store.experiments.records import Arm, DatasetEntry, Experiment
from hopscope.store.store import Store
from tests.store.run_examples import PROVENANCE, STARTED, a_run

NAME = "towns"
RUNS = ("run-1", "run-2")
STEPS, RETRIEVALS, PASSAGES = 4, (0, 2), 3
REASON = "the reader answered nothing to this question"
PER_RUN = 2 + STEPS + len(RETRIEVALS) * PASSAGES
"""Notes on a run: two scores of its answer, its steps' credits and its passages'."""


def a_credit(run: Run, step: int, passage: str | None, value: float | None) -> Credit:
    measured = Measurement(value=value, reason=REASON if value is None else None, n=10)
    return Credit(
        run_id=run.id,
        step=step,
        passage=passage,
        rule="shapley",
        meter="seper",
        measurement=measured,
        provenance=PROVENANCE,
    )


def credits_of(run: Run) -> list[Credit]:
    found = [
        a_credit(run, step.index, None, None if step.index == STEPS - 1 else step.index / 8)
        for step in run.steps
    ]
    for index in RETRIEVALS:
        for place, hit in enumerate(run.steps[index].ranked):
            found.append(a_credit(run, index, hit.passage.key, place / 16))
    return found


def make(file: Path) -> list[Run]:
    """Store the experiment; its runs."""
    runs = [
        found.model_copy(update={"question": found.question.model_copy(update={"id": found.id})})
        for found in (a_run(id, hops=2, k=PASSAGES, minute=at) for at, id in enumerate(RUNS))
    ]
    experiment = Experiment(
        name=NAME,
        settings={},
        reader="tiny@1",
        retriever="bm25@1f3a",
        entailment="lexical",
        seed=0,
        fingerprint="f",
        created=STARTED,
        arms=(Arm(label="ircot", workflow="ircot", settings={"options": {"k": PASSAGES}}),),
    )
    with Store.open(file) as store:
        entries = [DatasetEntry(question=run.question, hops=2) for run in runs]
        store.experiments.add(experiment, entries)
        session = store.experiments.begin_session(NAME, owner="here", environment={})
        for claimed in store.experiments.claim(session, len(runs)):
            run = runs[claimed.position]
            store.experiments.complete(session, claimed, run, credits=credits_of(run))
    return runs
