"""AUROC of turn rewards for useful searches: those that brought a needed passage.

IRCoT runs on two- and three-hop questions, as in `step_credit`; a case is a search, also one that
brought nothing new, and it is positive if it brought a gold passage that a model was shown. The
rewards are the product's differences, by SePer and by the log-probability and the probability of
the gold answer. The rows of a perfect reader, which answers if and only if it sees all gold, are
ceilings: in a chain of needed passages `trajectory` gives everything to the last one.

IGPO (arXiv 2510.14967) and TRACE (arXiv 2607.13988) for rewards of turns; Shapley 1953.
"""

from collections.abc import Sequence
from typing import NamedTuple

from hopscope.lab.suites.answering import answer
from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import KnownQuestion, Need
from hopscope.lab.suites.perfect import Perfect
from hopscope.lab.suites.resampling import Pairs
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime import components
from hopscope.runtime.execution.run import Workflow
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import UtilityMeter
from hopscope.runtime.types import Measurement, Provenance, Run
from hopscope.tracing import credit
from hopscope.tracing.appraisal import appraise
from hopscope.tracing.games.frozen import contributions
from hopscope.tracing.rewards import turns
from hopscope.tracing.rewards.turns import Rule, TurnRewards
from hopscope.workflows import ircot

K = 2
MAX_STEPS = 6
NEEDS = (Need.ANSWERS, Need.GOLD, Need.CHAINS)
SHARE = 4
"""One question in this many of each number of hops: a run with its rewards is expensive."""


class SearchCase(NamedTuple):
    """A search."""

    question: int
    hops: int
    whole: bool
    """Whether its run found all gold."""
    useful: bool
    rewards: dict[str, float | None]
    """By meter and rule; None where it was not measured."""


def build(inputs: SuiteInputs) -> list[Table]:
    """One table: AUROC by meter and rule, in runs that found all gold and in all runs."""
    runs, found = cases(inputs)
    return [_table(inputs, found, runs)]


def cases(inputs: SuiteInputs) -> tuple[list[Run], list[SearchCase]]:
    """The runs, and their searches with the rewards."""
    n = -(-inputs.limit // SHARE)
    items = [item for hops in inputs.several for item in inputs.questions(hops, n)]
    runs = [_run(inputs, item) for item in items]
    found = [
        case
        for number, (run, item) in enumerate(zip(runs, items, strict=True))
        if run.status == "ok"
        for case in _cases(inputs, run, item, number)
    ]
    return runs, found


def _run(inputs: SuiteInputs, item: KnownQuestion) -> Run:
    graph = ircot.build(k=K, max_steps=MAX_STEPS)
    workflow = Workflow("ircot", graph, {"k": K, "max_steps": MAX_STEPS})
    deps = Deps(inputs.reader, inputs.retriever, seed=inputs.seed, prompts=inputs.prompts("ircot"))
    return answer(workflow, item.question, deps)


def _cases(inputs: SuiteInputs, run: Run, item: KnownQuestion, number: int) -> list[SearchCase]:
    meters: list[UtilityMeter] = [
        inputs.seper(),
        inputs.gold_logprob(),
        inputs.gold_logprob("probability"),
        Perfect(item),
    ]
    found = {
        f"{meter.name}, {rule.value.replace('_', '-')}": rewards(inputs, run, meter, rule)
        for meter in meters
        for rule in Rule
    }
    brought = contributions(run)
    whole = item.holds(run.evidence) == 1
    first = next(iter(found.values()))
    return [
        SearchCase(
            number,
            item.hops,
            whole,
            any(map(item.is_gold, brought.get(turn.step, ()))),
            {name: each.differences[place] for name, each in found.items()},
        )
        for place, turn in enumerate(first.turns)
    ]


def rewards(inputs: SuiteInputs, run: Run, meter: UtilityMeter, rule: Rule) -> TurnRewards:
    """The product's rewards of a run."""
    credits = appraise(
        run,
        [meter],
        [components.load(credit, rule).build()],
        Provenance(reader=inputs.reader.name, entailment=inputs.entailment.name, seed=inputs.seed),
    )
    found = turns.of_credits(run, credits, meter=meter.name, rule=rule)
    return found or turns.unmeasured(run, "not shared", meter=meter.name, rule=rule)


def _table(inputs: SuiteInputs, cases: Sequence[SearchCase], runs: Sequence[Run]) -> Table:
    columns = {"whole": [case for case in cases if case.whole], "all": cases}
    rows: list[dict[str, Cell]] = [
        {
            "reward": name,
            **{column: auroc(of, name, inputs.seed) for column, of in columns.items()},
        }
        for name in (cases[0].rewards if cases else ())
    ]
    whole = {case.question for case in cases if case.whole}
    failed = sum(run.status != "ok" for run in runs)
    counts = ", ".join(
        f"{sum(case.useful for case in of)} of {len(of)} searches useful in {name}"
        for name, of in (("these runs", columns["whole"]), ("all runs", cases))
    )
    return table(
        "useful_searches",
        "AUROC of turn rewards for useful searches",
        {"reward": "meter, rule", "whole": "runs that found all gold", "all": "all runs"},
        rows,
        f"{len(runs)} IRCoT runs (k={K}), {len(whole)} found all gold, {failed} failed; {counts}",
        f"95 % intervals: {Pairs((), (), inputs.seed).method}",
    )


def auroc(cases: Sequence[SearchCase], name: str, seed: int) -> Measurement:
    """The AUROC of the rewards by this meter and rule for useful searches."""
    numbers = {number: i for i, number in enumerate(dict.fromkeys(c.question for c in cases))}
    truth = [float(case.useful) for case in cases]
    pairs = Pairs(truth, [numbers[case.question] for case in cases], seed)
    return pairs.auroc([case.rewards[name] for case in cases])
