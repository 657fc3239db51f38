"""eRAG's Table 1 in small: the labels of passages that best predict the answer from a list.

Each question has lists of differing quality: the first hits of a search for it, the next hits,
distractors with all gold passages, with those from a later hop on or with none, and random
passages; or it has one given ranking, as in the paper. Each list is scored by every measure of
rankings, from three kinds of labels: the passage contains the answer, it is gold, or the reader
answers right from it alone (eRAG). The downstream quality is the score of the reader's answer from
the whole list, by the metric of eRAG's labels. Both are correlated over all lists of all questions.

With two hops no single passage gives the answer, so eRAG's labels miss its utility; the tables
separate the hops.

Source: Salemi and Zamani 2024 (arXiv 2404.13781), sections 2 and 3.2, Table 1.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import KnownQuestion, Need
from hopscope.lab.suites.readings import NO_ANSWER, column
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.types import Generation, Measurement, Passage
from hopscope.tracing.answer_metrics import exact_match
from hopscope.tracing.asking import asking
from hopscope.tracing.asking.asking import Unmeasured
from hopscope.tracing.erag import ranking
from hopscope.tracing.erag.labels import ERAG, Ranking
from hopscope.tracing.scoring.metric import Case
from hopscope.tracing.statistics.correlation import RankCorrelation, rank_correlation
from hopscope.tracing.statistics.over_questions import Bootstrap, estimates

SIZE = 5
"""Passages of a list."""
NEEDS = (Need.ANSWERS, Need.GOLD, Need.PASSAGES)
TAKES_CANDIDATES = True
METERS = ()
HOPS = (1, 2)
LABELS = ("holds the answer", "gold", "eRAG")
STATISTICS: tuple[tuple[RankCorrelation, str], ...] = (("kendall", "tau"), ("spearman", "rho"))
RESAMPLES = 1000

List = tuple[Passage, ...]


class Scored(NamedTuple):
    """A list with its scores."""

    question: str
    """The id of its question."""
    found: str
    """How."""
    right: float | None
    """The downstream quality; None if the list exceeds the reader's context."""
    measures: dict[str, dict[str, float | None]]
    """By kind of label, then by measure."""


GIVEN = "given"
ALL = "all"

Group = int | str
"""The hops of questions, or `ALL` of them."""


def build(inputs: SuiteInputs) -> list[Table]:
    """Questions of one and of two hops apart; with given rankings all together."""
    scored: dict[Group, list[list[Scored]]]
    asked = sorted(set(map(inputs.near, HOPS)))
    if any(item.ranked for item in inputs.mixed(1)):
        scored = {ALL: [score(inputs, item) for item in inputs.mixed(inputs.limit)]}
    else:
        scored = {hops: [score(inputs, item) for item in inputs.questions(hops)] for hops in asked}
    return [
        quality(scored, Bootstrap(seed=inputs.seed)),
        correlations(scored, seed=inputs.seed),
    ]


def lists(inputs: SuiteInputs, item: KnownQuestion) -> dict[str, List]:
    """The lists of a question by name, without empty ones; a given ranking is the only one."""
    if item.ranked:
        return {GIVEN: item.candidates}
    [hits] = inputs.retriever.search([item.question.text], k=2 * SIZE)
    ranked = tuple(hit.passage for hit in hits)
    found = {"search": ranked[:SIZE], "search, next": ranked[SIZE:]}
    for missing in range(item.hops + 1):
        gold = item.gold[missing:]
        name = f"gold from hop {missing + 1}" if gold else "no gold"
        others = inputs.distractors(item, max(0, SIZE - len(gold)))
        found[name] = inputs.shuffled(item, (*gold, *others))
    found["random"] = inputs.unrelated(item, SIZE)
    return {name: passages for name, passages in found.items() if passages}


def score(inputs: SuiteInputs, item: KnownQuestion) -> list[Scored]:
    """Score each list of a question."""
    found = lists(inputs, item)
    metric = exact_match.build()
    erag = ERAG(inputs.reader, metric, prompts=inputs.presets.prompts or "")
    asked = asking.requests(
        item.question.text,
        list(found.values()),
        n=1,
        temperature=0.0,
        max_tokens=erag.max_tokens,
        seed=erag.seed,
        prompts=erag.prompts,
    )
    replies = dict(zip(asked, asking.generate(inputs.reader, list(asked.values())), strict=True))
    answers = [_answer(replies[asking.content(passages)]) for passages in found.values()]
    verdicts = metric.score([Case(item.question, answer) for answer in answers])
    rankings = erag.rank(item.question, list(found.values()))
    return [
        Scored(item.question.id, name, verdict.value, measures(item, passages, ranked))
        for (name, passages), verdict, ranked in zip(found.items(), verdicts, rankings, strict=True)
    ]


def measures(
    item: KnownQuestion, passages: List, ranked: Ranking
) -> dict[str, dict[str, float | None]]:
    """The measures of one list, by kind of label."""
    holds = [item.tells(p) for p in passages]
    return {
        "holds the answer": ranking.measures([float(label) for label in holds], binary=True),
        "gold": ranking.measures([float(item.is_gold(p)) for p in passages], binary=True),
        "eRAG": {name: ranked.measures[name].value for name in ranking.BINARY},
    }


def quality(scored: Mapping[Group, Sequence[Sequence[Scored]]], bootstrap: Bootstrap) -> Table:
    """Accuracy of the answers from each kind of list."""
    rows: dict[str, dict[str, Cell]] = {}
    for hops, of in scored.items():
        by_list: dict[str, list[float | None]] = {}
        for each in chain.from_iterable(of):
            by_list.setdefault(each.found, []).append(each.right)
        columns = [column(values, reason=NO_ANSWER) for values in by_list.values()]
        for name, rate in zip(by_list, estimates(columns, bootstrap), strict=True):
            rows.setdefault(name, {"list": name})[f"right_{hops}"] = rate
    return table(
        "erag_lists",
        "Right answers from the given lists"
        if ALL in scored
        else f"Right answers from lists of {SIZE} passages",
        {"list": "list", **{f"right_{hops}": _heading(hops) for hops in scored}},
        list(rows.values()),
        "right: exact match; 95 % intervals: clopper-pearson",
    )


def correlations(scored: Mapping[Group, Sequence[Sequence[Scored]]], *, seed: int) -> Table:
    """Correlations of each measure, by kind of label, with the downstream quality."""
    rows: list[dict[str, Cell]] = []
    for kind in LABELS:
        for measure in ranking.BINARY:
            row: dict[str, Cell] = {"labels": kind, "measure": measure}
            for hops, of in scored.items():
                known = list(chain.from_iterable(of))
                row |= {
                    f"{symbol}_{hops}": correlation(statistic, known, kind, measure, seed=seed)
                    for statistic, symbol in STATISTICS
                }
            rows.append(row)
    return table(
        "erag",
        "Correlation of a list's measures with the answer from it, by kind of label",
        {
            "labels": "label",
            "measure": "measure",
            **{
                f"{symbol}_{hops}": f"{symbol}, {_heading(hops)}"
                for hops in scored
                for _, symbol in STATISTICS
            },
        },
        rows,
        "Kendall's tau-b and Spearman's rho over lists; 95 % intervals: percentile bootstrap over "
        f"questions, resamples={RESAMPLES}, seed={seed}",
    )


def correlation(
    statistic: RankCorrelation, scored: Sequence[Scored], kind: str, measure: str, *, seed: int
) -> Measurement:
    """The correlation over lists with both values; the bootstrap draws lists of one question
    together."""
    pairs = [
        (each.question, value, each.right)
        for each in scored
        if (value := each.measures[kind][measure]) is not None and each.right is not None
    ]
    return rank_correlation(
        statistic,
        [value for _, value, _ in pairs],
        [right for _, _, right in pairs],
        clusters=[question for question, _, _ in pairs],
        seed=seed,
        resamples=RESAMPLES,
    )


def _heading(group: Group) -> str:
    return f"{group} questions" if group == ALL else f"{group} hop"


def _answer(reply: list[Generation] | Unmeasured) -> str | None:
    return None if isinstance(reply, Unmeasured) else reply[0].text.strip()
