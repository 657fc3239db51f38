"""SePer's Table 12 in small: workflows by the number of passages per retrieval.

The belief in the gold answer is SePer-S with all passages that a run showed its reader; ΔSePer is
that minus the closed-book belief; the other columns are accuracy and cost. The paper heads its
table ΔSePer, but its rows of naive RAG equal those of its Table 10, which are SePer; this table has
both. RetRobust is Self-Ask's loop with a reader tuned for it and, with `back_off`, an answer closed
book where the passages do not entail the chain, by the suite's entailment.

Source: Dai et al. 2025 (arXiv 2503.01478), appendix A.3, Table 12.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from langgraph.graph import StateGraph

from hopscope.lab.suites import answering
from hopscope.lab.suites.columns import mean
from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import Need
from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.runtime.execution.run import Workflow
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Reader, Retriever
from hopscope.runtime.prompting.prompt_set import PromptSet
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Measurement, Passage, Question, Run
from hopscope.tracing.answer_metrics import equivalence, exact_match
from hopscope.tracing.games.frozen import over_steps
from hopscope.tracing.meters.seper import SePer
from hopscope.tracing.scoring.metric import AnswerMetric, case_of
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, estimates
from hopscope.workflows import flare, ircot, iter_retgen, naive, self_ask

NEEDS = (Need.ANSWERS,)
SHARE = 0.5
"""The share of the limit: every question is answered and measured fifteen times."""
RIGHT = 0.8
"""From this equivalence on an answer is right."""
WORKFLOWS: dict[str, Callable[..., StateGraph[Any, Deps, Any, Any]]] = {
    "naive": naive.build,
    "iter_retgen": iter_retgen.build,
    "ircot": ircot.build,
    "self_ask": self_ask.build,
    "flare": flare.build,
}
NO_OPTIONS: Mapping[str, Mapping[str, Any]] = {}
NO_PROMPTS: Mapping[str, PromptSet] = {}
VARIED = tuple(f"{name}.k" for name in WORKFLOWS)
KS = (1, 3, 5)
MEASURES = {
    "exact_match": "EM",
    "accuracy": "accuracy",
    "seper": "SePer",
    "seper_delta": "ΔSePer",
    "retrievals": "retrievals",
    "tokens": "tokens",
}
SHARES = ("exact_match", "accuracy")
"""The binary ones of `MEASURES`."""
DIGITS = {"retrievals": 2, "tokens": 0}
"""Decimals of the measures whose figures do not have three."""


class MeasuredQuestion(NamedTuple):
    """The values of one question in one workflow."""

    run: Run
    before: Measurement
    """SePer closed book."""
    belief: Measurement
    """SePer with all passages that the run showed."""


def build(inputs: SuiteInputs) -> list[Table]:
    """Questions of one and of two hops, or those of a file."""
    asked = [item.question for item in inputs.mixed(ceil(inputs.limit * SHARE))]
    meter = inputs.seper()
    options = {name: inputs.workflow(name) for name in WORKFLOWS}
    prompts = {name: inputs.prompts(name) for name in WORKFLOWS}
    reader, retriever = inputs.reader, inputs.retriever
    found = [answer(reader, retriever, meter, each, options, prompts) for each in asked]
    judge = equivalence.build(inputs.entailment)
    return [tabulate(found, judge, *failures(found), seed=inputs.seed)]


def answer(
    reader: Reader,
    retriever: Retriever,
    meter: SePer,
    question: Question,
    options: Mapping[str, Mapping[str, Any]] = NO_OPTIONS,
    prompts: Mapping[str, PromptSet] = NO_PROMPTS,
) -> dict[tuple[str, int], MeasuredQuestion]:
    """Measure a question in every workflow with every k.

    Args:
        options, prompts: of workflows, by their name.
    """
    deps = Deps(
        reader, retriever, entailment=meter.entailment, seed=meter.seed, capture_content=False
    )
    runs = {
        (name, k): answering.answer(
            Workflow(name, graph(**{**options.get(name, {}), "k": k}), {"k": k}, prompts.get(name)),
            question,
            deps,
        )
        for name, graph in WORKFLOWS.items()
        for k in KS
    }
    before, *beliefs = meter.measure(question, [(), *map(shown, runs.values())])
    return {
        way: MeasuredQuestion(done, before, belief)
        for (way, done), belief in zip(runs.items(), beliefs, strict=True)
    }


def shown(done: Run) -> tuple[Passage, ...]:
    """All passages that a run showed, in order of retrieval."""
    game = over_steps(done)
    return game.evidence(frozenset(game.players))


def failures(found: Sequence[Mapping[tuple[str, int], MeasuredQuestion]]) -> list[str]:
    """A note on the runs that failed."""
    errors = [row.run.error.message for of in found for row in of.values() if row.run.error]
    return [f"{counted(len(errors), 'run')} failed, the first with: {errors[0]}"] if errors else []


def tabulate(
    found: Sequence[Mapping[tuple[str, int], MeasuredQuestion]],
    judge: AnswerMetric,
    *notes: str,
    seed: int,
) -> Table:
    """A row for each workflow and k."""
    bootstrap = Bootstrap(seed=seed)
    ways = {way: [of[way] for of in found] for way in found[0]}
    columns = [column for rows in ways.values() for column in measured(rows, judge)]
    figures = estimates(columns, bootstrap)
    width = len(MEASURES)
    rows: list[dict[str, Cell]] = [
        {
            "workflow": f"{name}, k={k}",
            **dict(zip(MEASURES, figures[place * width : (place + 1) * width], strict=True)),
        }
        for place, (name, k) in enumerate(ways)
    ]
    made = table(
        "workflows_by_k",
        "Workflows by passages per retrieval (SePer, Table 12)",
        {"workflow": "workflow", **MEASURES},
        rows,
        f"{counted(len(found), 'question')}; accuracy: {judge.estimator} of {RIGHT} or more; "
        "retrievals and tokens per question",
        *notes,
        *methods(*(figure.interval for figure in figures)),
    )
    return made.model_copy(update={"digits": made.digits | DIGITS})


def measured(rows: Sequence[MeasuredQuestion], judge: AnswerMetric) -> list[Column]:
    """The columns of a row, in the order of `MEASURES`; a run that failed has no values."""
    cases = [case_of(row.run) for row in rows]
    right = [found.value for found in judge.score(cases)]
    values: dict[str, list[float | None]] = {
        "exact_match": [found.value for found in exact_match.build().score(cases)],
        "accuracy": [None if value is None else float(value >= RIGHT) for value in right],
        "seper": [row.belief.value for row in rows],
        "seper_delta": [gain(row) for row in rows],
        "retrievals": [len(row.run.retrievals) for row in rows],
        "tokens": [row.run.usage.tokens for row in rows],
    }
    return [
        mean(
            [
                v if row.run.status == "ok" else None
                for row, v in zip(rows, values[name], strict=True)
            ],
            binary=name in SHARES,
        )
        for name in MEASURES
    ]


def gain(row: MeasuredQuestion) -> float | None:
    """ΔSePer."""
    if row.belief.value is None or row.before.value is None:
        return None
    return row.belief.value - row.before.value
