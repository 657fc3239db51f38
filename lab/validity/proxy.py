"""How far the credit of a proxy agrees with that of the reader that ran.

Each of two readers runs IRCoT on the same two- and three-hop questions, and both measure the runs
of both. A case is a step that retrieved shown passages. The table has Kendall's tau-b between the
credit by the reader that ran and the credit by the reader that measures, rounded to hundredths:
over the steps of all runs, and within a run, where only the order of its own searches counts (the
mean over the runs in which both readers' credits differ between steps).

The rows in which a reader measures its own runs are ceilings: there SePer draws other samples; the
other meters are exact for a reader. GroGU is that with key tokens, which has no Shapley share, and
that with all tokens (`score=entropy`).

Trivedi et al. 2023 (arXiv 2212.10509) for IRCoT; Kendall 1945 for tau-b.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hopscope.lab.suites.answering import answer
from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import KnownQuestion, Need
from hopscope.lab.suites.readings import column
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.execution.run import Workflow
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Reader, UtilityMeter
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Measurement, Provenance, Run
from hopscope.tracing.appraisal import appraise
from hopscope.tracing.credit import shapley, trajectory
from hopscope.tracing.games.frozen import contributions
from hopscope.tracing.meters.grogu import GroGU
from hopscope.tracing.statistics.correlation import rank_correlation
from hopscope.tracing.statistics.over_questions import Bootstrap, estimates
from hopscope.workflows import ircot

K = 2
MAX_STEPS = 6
NEEDS = (Need.ANSWERS, Need.GOLD, Need.CHAINS)
SHARE = 4
"""One question in this many of each number of hops: two runs by two readers are expensive."""
RULES = {"trajectory": trajectory, "shapley": shapley}
OWN, OTHER = "reader", "other reader"
SEPER, KEYS, ALL = "ΔSePer", "GroGU, key tokens", "GroGU, all tokens"
WITHIN = "_within"
DIGITS = 2
"""Decimals of credits, as tables show them: smaller differences are ties, not an order."""
MISSING = Measurement(value=None, reason="no other reader: name one with --other-reader")

UNSHARED = Measurement(value=None, reason="GroGU with key tokens has no Shapley share")

Shares = Mapping[tuple[int, int], float | None]
"""Credit by question and step; None where it was not measured."""


class Measured(NamedTuple):
    """Runs by one reader, measured by another or the same."""

    ran: str
    by: str
    meter: str
    rule: str


def build(inputs: SuiteInputs) -> list[Table]:
    """One table: tau by the reader that ran, the reader that measures, meter and rule."""
    n = -(-inputs.limit // SHARE)
    items = [item for hops in inputs.several for item in inputs.questions(hops, n)]
    readers = {OWN: inputs.reader}
    if inputs.other is not None:
        readers[OTHER] = inputs.other
    runs = {ran: _runs(inputs, reader, items) for ran, reader in readers.items()}
    shares: dict[Measured, Shares] = {}
    again: dict[Measured, Shares] = {}
    for ran, made in runs.items():
        for by, reader in readers.items():
            for name, meter in _meters(inputs, reader).items():
                for rule, found in _credits(inputs, reader, made, meter).items():
                    shares[Measured(ran, by, name, rule)] = found
        resampled = inputs.seper(reader=readers[ran], seed=inputs.seed + 1)
        for rule, found in _credits(inputs, readers[ran], made, resampled).items():
            again[Measured(ran, ran, SEPER, rule)] = found
    return [_table(inputs, shares, again, runs, len(items))]


def _runs(inputs: SuiteInputs, reader: Reader, items: Sequence[KnownQuestion]) -> dict[int, Run]:
    """The runs of one reader that did not fail, by the number of their question."""
    graph = ircot.build(k=K, max_steps=MAX_STEPS)
    workflow = Workflow("ircot", graph, {"k": K, "max_steps": MAX_STEPS})
    deps = Deps(reader, inputs.retriever, seed=inputs.seed, prompts=inputs.prompts("ircot"))
    made = {number: answer(workflow, item.question, deps) for number, item in enumerate(items)}
    return {number: run for number, run in made.items() if run.status == "ok"}


def _meters(inputs: SuiteInputs, reader: Reader) -> dict[str, UtilityMeter]:
    prompts = str(inputs.meter("grogu").get("prompts", ""))
    return {
        SEPER: inputs.seper(reader=reader),
        "gold_logprob": inputs.gold_logprob(reader=reader),
        KEYS: GroGU(reader, prompts=prompts),
        ALL: GroGU(reader, score="entropy", prompts=prompts),
    }


def _credits(
    inputs: SuiteInputs, reader: Reader, runs: Mapping[int, Run], meter: UtilityMeter
) -> Mapping[str, Shares]:
    """The product's credit of the steps that brought passages, by rule."""
    rules = {module.build().name: name for name, module in RULES.items()}
    found: dict[str, dict[tuple[int, int], float | None]] = {}
    provenance = Provenance(reader=reader.name, entailment=inputs.entailment.name, seed=inputs.seed)
    for number, run in runs.items():
        brought = contributions(run)
        built = [module.build() for module in RULES.values()]
        for credit in appraise(run, [meter], built, provenance):
            if credit.rule in rules and credit.step in brought:
                shares = found.setdefault(rules[credit.rule], {})
                shares[number, credit.step] = credit.measurement.value
    return found


def _table(
    inputs: SuiteInputs,
    shares: Mapping[Measured, Shares],
    again: Mapping[Measured, Shares],
    runs: Mapping[str, Mapping[int, Run]],
    questions: int,
) -> Table:
    rows: list[dict[str, Cell]] = []
    bootstrap = Bootstrap(seed=inputs.seed)
    for ran in runs:
        for by, meter in dict.fromkeys((each.by, each.meter) for each in shares):
            compared = again if by == ran else shares
            cells: dict[str, Cell] = {}
            for rule in RULES:
                own = shares.get(Measured(ran, ran, meter, rule))
                other = compared.get(Measured(ran, by, meter, rule))
                if own is not None and other is not None:
                    cells |= _agreement(inputs, rule, own, other, bootstrap)
            if cells:
                missing = {f"{r}{w}": UNSHARED for r in RULES for w in ("", WITHIN)}
                rows.append({"ran": ran, "by": by, "meter": meter, **missing, **cells})
    if OTHER not in runs:
        rows.append({"ran": OWN, "by": OTHER, "meter": SEPER, "trajectory": MISSING})
    counts = ", ".join(
        f"{counted(len(made), 'run')} with "
        f"{counted(sum(len(contributions(run)) for run in made.values()), 'step')} by the {ran}"
        for ran, made in runs.items()
    )
    names = {OWN: inputs.reader, OTHER: inputs.other}
    known = ", ".join(f"{name}: {reader.name}" for name, reader in names.items() if reader)
    return table(
        "proxy_tau",
        "Kendall's tau-b of a proxy's credit with that of the reader that ran",
        {
            "ran": "ran",
            "by": "measured by",
            "meter": "meter",
            "trajectory": "trajectory",
            "shapley": "Shapley",
            f"trajectory{WITHIN}": "trajectory, within runs",
            f"shapley{WITHIN}": "Shapley, within runs",
        },
        rows,
        f"{counted(questions, 'question')}; IRCoT (k={K}): {counts}; {known}; credits rounded to "
        f"{DIGITS} decimals",
        "rows in which a reader measures its own runs: SePer with other samples",
        f"95 % intervals: bootstrap over questions, within runs {bootstrap.method}",
    )


def _agreement(
    inputs: SuiteInputs, rule: str, own: Shares, other: Shares, bootstrap: Bootstrap
) -> dict[str, Cell]:
    """Tau over the steps of all runs, and its mean within runs."""
    pairs: dict[int, list[tuple[float, float]]] = {}
    for (question, step), one in own.items():
        two = other[question, step]
        if one is not None and two is not None:
            pairs.setdefault(question, []).append((round(one, DIGITS), round(two, DIGITS)))
    clusters = [question for question, same in pairs.items() for _ in same]
    ones, twos = zip(*(pair for same in pairs.values() for pair in same), strict=True)
    within = [_tau(same) for same in pairs.values()]
    reason = "no run has two steps of different credit"
    [mean] = estimates([column(within, reason=reason, binary=False)], bootstrap)
    overall = rank_correlation("kendall", ones, twos, clusters=clusters, seed=inputs.seed)
    return {rule: overall, f"{rule}{WITHIN}": mean}


def _tau(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Kendall's tau-b within a run; None if a side has no order."""
    ones, twos = zip(*pairs, strict=True)
    return rank_correlation("kendall", ones, twos, resamples=0).value
