"""SePer's Table 2 in small: correlation of ΔSePer and of other metrics with the true utility.

Pearson's r with the truth, single passage and multi-hop. Single passage: a gold passage (utility 1)
against a hit of the search and a random passage, neither of which names the answer (utility 0), for
one-hop questions that the reader does not answer closed book. Multi-hop: all sets of the gold
passages of a two- or three-hop question and one distractor, with the share k/n of the gold as
utility; and the credit of single steps, each with one of these passages, with utility 1/n for gold.
A strict chain needs all its gold, so even a reader that never errs has an r below 1 for sets, and
for steps by trajectory credit, which is (0, ..., 0, 1) then: its rows are the ceilings.

The table of samples is the paper's Figure 3, that of repetitions its Table 4. Of several entailment
models all judge the same replies; further tables have the correlation between them.

Dai et al. 2025 (arXiv 2503.01478), sections 4.1.2 and 4.2, appendix A.1.2.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random

from hopscope.lab.suites import entailment_models, repeated, rivals
from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import KnownQuestion, Need
from hopscope.lab.suites.perfect import Perfect
from hopscope.lab.suites.resampling import Pairs
from hopscope.lab.suites.rivals import HARD, SOFT, Contexts, ContextScores, RivalScores
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.ports import UtilityMeter
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Measurement, Passage, Question
from hopscope.tracing.credit import leave_one_out, shapley, trajectory
from hopscope.tracing.games.coalitions import Coalitions, EvidenceValues, content
from hopscope.tracing.games.frozen import FrozenGame, Slot

NEEDS = (Need.ANSWERS, Need.GOLD, Need.PASSAGES)
TAKES_CANDIDATES = True
COMPARES_ENTAILMENTS = True
SHARE = 4
"""One multi-hop question in this many of each number of hops: each has 8 or 16 contexts."""
KNOWN = 0.5
"""From this closed-book belief on the reader knows the answer, and no passage can help."""
RULES = {"shapley": shapley, "trajectory": trajectory, "leave_one_out": leave_one_out}
PERFECT = "a perfect reader (ceiling)"


@dataclass
class Series:
    """The true utility and the value of every metric, by context of each question."""

    truth: list[float] = field(default_factory=list)
    question: list[int] = field(default_factory=list)
    scores: dict[str, list[float | None]] = field(default_factory=dict)

    def add(
        self, number: int, truth: Sequence[float], scores: Mapping[str, Sequence[float | None]]
    ) -> None:
        """The pairs of one question."""
        self.truth += truth
        self.question += [number] * len(truth)
        for name, values in scores.items():
            self.scores.setdefault(name, []).extend(values)

    def pairs(self, seed: int) -> Pairs:
        return Pairs(self.truth, self.question, seed)


def build(inputs: SuiteInputs) -> list[Table]:
    """Single passage, multi-hop sets, multi-hop steps, samples and repetitions; of several
    entailments also the correlations between them."""
    scores = rivals.make(inputs)
    reasons: dict[str, str] = {}
    return [
        *_single(inputs, scores, reasons),
        *_multi(inputs, scores, reasons),
        repeated.table_of(inputs),
    ]


def _single(inputs: SuiteInputs, scores: RivalScores, reasons: dict[str, str]) -> list[Table]:
    series, known = Series(), 0
    items = inputs.questions(inputs.near(1))
    for item in items:
        contexts = inputs.single_passages(item)
        told = _tell(inputs, scores, item.question, contexts, reasons)
        closed = told[SOFT].values[0]
        if closed is not None and closed >= KNOWN:
            known += 1
            continue
        number = len(set(series.question))
        series.add(number, [item.holds(shown) for shown in contexts[1:]], _gains(told))
    made = _correlations(
        inputs,
        "single_passage",
        "Single passage: correlation with the true utility, 1 or 0",
        series,
        reasons,
        f"{known} of {counted(len(items), 'question')} left out: answered closed book",
    )
    name = "entailments_single_passage"
    return [made, *_between(inputs, name, "Single passage", series)]


def _between(inputs: SuiteInputs, name: str, contexts: str, series: Series) -> list[Table]:
    return entailment_models.matrix(inputs, name, contexts, series.question, series.scores)


def _multi(inputs: SuiteInputs, scores: RivalScores, reasons: dict[str, str]) -> list[Table]:
    if not inputs.several:
        return []
    sets, steps = Series(), {rule: Series() for rule in RULES}
    n = -(-inputs.limit // SHARE)
    items = [item for hops in inputs.several for item in inputs.questions(hops, n)]
    for number, item in enumerate(items):
        game, worth = trajectory_of(inputs, item)
        contexts = [game.evidence(frozenset(chosen)) for chosen in _subsets(game.members)]
        told = _tell(inputs, scores, item.question, contexts, reasons)
        told[PERFECT] = ContextScores([float(item.holds(shown) == 1) for shown in contexts])
        sets.add(number, [item.holds(shown) for shown in contexts[1:]], _gains(told))
        for rule, credits in _credits(game, item, contexts, told).items():
            steps[rule].add(number, worth, credits)
    title = "Multi-hop sets: correlation with the true utility, the share of the gold passages"
    return [
        _correlations(inputs, "multi_hop_sets", title, sets, reasons),
        *_between(inputs, "entailments_multi_hop_sets", "Multi-hop sets", sets),
        _steps(inputs, steps, reasons),
    ]


def trajectory_of(inputs: SuiteInputs, item: KnownQuestion) -> tuple[FrozenGame, list[float]]:
    """A run whose steps retrieve one passage each: the gold in reasoning order, with a distractor
    at a random place; and the true utility of each step."""
    rng = Random(f"trajectory {inputs.seed} {item.question.id}")
    brought = list(item.gold)
    brought[(place := rng.randint(0, len(brought))) : place] = inputs.distractors(item, 1)
    slots = tuple(Slot(passage, frozenset({i}), None) for i, passage in enumerate(brought))
    worth = [item.is_gold(passage) / len(item.gold) for passage in brought]
    return FrozenGame(tuple(range(len(brought))), slots), worth


def _subsets(members: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All coalitions, the empty one first."""
    for size in range(len(members) + 1):
        yield from combinations(members, size)


def _tell(
    inputs: SuiteInputs,
    scores: RivalScores,
    question: Question,
    contexts: Contexts,
    reasons: dict[str, str],
) -> dict[str, ContextScores]:
    meter = inputs.seper()
    told = scores.tell(question, contexts, meter.beliefs(question, contexts))
    others = entailment_models.tell(inputs, scores, question, contexts)
    told = {SOFT: told[SOFT], HARD: told[HARD], **others, **told}
    for name, found in told.items():
        if None in found.values:
            reasons.setdefault(name, found.reason)
    return told


def _gains(told: Mapping[str, ContextScores]) -> dict[str, list[float | None]]:
    """Each context's score minus the first one's, the closed-book score."""
    return {
        name: [
            None if value is None or found.values[0] is None else value - found.values[0]
            for value in found.values[1:]
        ]
        for name, found in told.items()
    }


@dataclass(frozen=True)
class Recorded:
    """A meter that returns stored measurements."""

    name: str
    values: Mapping[str, float | None]

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        found = [self.values[content(evidence)] for evidence in evidences]
        return [
            Measurement(value=value, reason="not measured" if value is None else None)
            for value in found
        ]


def _credits(
    game: FrozenGame, item: KnownQuestion, contexts: Contexts, told: Mapping[str, ContextScores]
) -> dict[str, dict[str, list[float | None]]]:
    """By rule and metric, the credit of each step."""
    keys = [content(shown) for shown in contexts]
    found: dict[str, dict[str, list[float | None]]] = {rule: {} for rule in RULES}
    for name, each in told.items():
        recorded = Recorded(name, dict(zip(keys, each.values, strict=True)))
        meter: UtilityMeter = Perfect(item) if name == PERFECT else recorded
        coalitions = Coalitions(game, EvidenceValues(item.question, meter))
        for rule, module in RULES.items():
            shares = module.build().share(coalitions)
            found[rule][name] = [share.value for share in shares]
    return found


def _correlations(
    inputs: SuiteInputs,
    name: str,
    title: str,
    series: Series,
    reasons: Mapping[str, str],
    *notes: str,
) -> Table:
    pairs = series.pairs(inputs.seed)
    rows: list[dict[str, Cell]] = []
    for metric, values in series.scores.items():
        t, p = pairs.test(values)
        row: dict[str, Cell] = {"metric": metric, "r": pairs.pearson(values), "t": t, "p": p}
        if metric not in (SOFT, PERFECT):
            row["lead"] = pairs.pearson_above(series.scores[SOFT], values)
        rows.append(row)
    return table(
        name,
        title,
        {"metric": "", "r": "r", "t": "t", "p": "p", "lead": f"r of {SOFT} minus this"},
        [_explained(row, reasons) for row in rows],
        f"{counted(len(series.truth), 'pair')} of {counted(len(set(series.question)), 'question')}",
        *notes,
        *entailment_models.notes(inputs),
        f"95 % intervals: {pairs.method}",
    )


def _steps(inputs: SuiteInputs, steps: Mapping[str, Series], reasons: Mapping[str, str]) -> Table:
    """Every metric's credit by every rule."""
    first = next(iter(steps.values()))
    pairs = {rule: series.pairs(inputs.seed) for rule, series in steps.items()}
    rows: list[dict[str, Cell]] = [
        {
            "metric": metric,
            **{rule: pairs[rule].pearson(steps[rule].scores[metric]) for rule in RULES},
        }
        for metric in first.scores
    ]
    return table(
        "multi_hop_steps",
        "Multi-hop steps: correlation of credit with the true utility, 1/n or 0",
        {"metric": "", **{rule: rule.replace("_", "-") for rule in RULES}},
        [_explained(row, reasons) for row in rows],
        f"{counted(len(first.truth), 'step')} of {counted(len(set(first.question)), 'question')}",
        *entailment_models.notes(inputs),
        f"95 % intervals: {pairs['shapley'].method}",
    )


def _explained(row: Mapping[str, Cell], reasons: Mapping[str, str]) -> dict[str, Cell]:
    """The correlation, or the metric's own reason if it could not be measured."""
    why = reasons.get(str(row["metric"]))
    return {
        key: cell.model_copy(update={"reason": why})
        if why and isinstance(cell, Measurement) and cell.value is None and not cell.n
        else cell
        for key, cell in row.items()
    }
