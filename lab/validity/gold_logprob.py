"""Where the gold's log-probability agrees with SePer, and where it misleads.

- *one hop*: gains over no evidence, by SePer-S and by the gold's probability and log-probability,
  from the gold passage, from a passage that names the answer without telling it, and from a
  distractor; and with the gold passage, but for another gold: the same in lower case (worth the
  same), the answer's first word and the answer to another question (worth nothing).
- *two hops*: gains from the first passage, from the last and from both. In a strict chain only both
  help.
- *agreement*: Pearson's r of either scale with ΔSePer-S over those contexts, and how often the
  signs are equal where SePer's gain exceeds .05.

IGPO (arXiv 2510.14967) rewards by the probability, TRACE (arXiv 2607.13988) by the log-probability.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import KnownQuestion
from hopscope.lab.suites.readings import column
from hopscope.lab.suites.resampling import Pairs
from hopscope.lab.suites.rivals import GOLD, SOFT
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.ports import UtilityMeter
from hopscope.runtime.texts.answers import contains
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Measurement, Passage, Question
from hopscope.tracing.statistics.over_questions import Bootstrap, estimates

CLEAR = 0.05
"""Gains of SePer below this have no sign."""


class Situation(NamedTuple):
    """Evidence and a gold to measure it against."""

    kind: str
    evidence: tuple[Passage, ...] | None
    """None where the question has no such situation: no passage names its answer, or the other
    gold would be the same."""
    gold: str


Gains = Mapping[str, float | None]
"""By the name of the meter."""
Told = Sequence[Mapping[str, Gains]]
"""For each question, the gains by kind of situation."""


def build(inputs: SuiteInputs) -> list[Table]:
    """Gains by situation for one and two hops, and agreement with SePer."""
    one, two = inputs.questions(1), inputs.questions(2)
    answers = [item.answer for item in one]
    told_one = [_told(inputs, i, _one_hop(inputs, i, answers)) for i in one]
    told_two = [_told(inputs, i, _two_hops(i)) for i in two]
    return [
        _gains(inputs, "gold_one_hop", "Mean gains over no evidence, one hop", told_one),
        _gains(inputs, "gold_two_hops", "Mean gains over no evidence, two hops", told_two),
        _agreement(inputs, {"1 hop": told_one, "2 hops": told_two}),
    ]


def _one_hop(inputs: SuiteInputs, item: KnownQuestion, answers: Sequence[str]) -> list[Situation]:
    rng = Random(f"gold {inputs.seed} {item.question.id}")
    own = {passage.key for passage in item.gold}
    naming = [
        passage
        for passage in inputs.passages
        if passage.key not in own and contains(f"{passage.title} {passage.text}", item.answer)
    ]
    others = [answer for answer in answers if answer != item.answer]
    names = (rng.choice(naming),) if naming else None
    other = rng.choice(others) if others else "Nobody"
    lower, first = item.answer.lower(), item.answer.split()[0]
    return [
        Situation("gold passage", item.gold, item.answer),
        Situation("names the answer, does not tell it", names, item.answer),
        Situation("distractor", inputs.distractors(item, 1), item.answer),
        *(
            Situation(f"gold passage, {kind}", None if gold == item.answer else item.gold, gold)
            for kind, gold in (
                ("gold in lower case", lower),
                ("first word as gold", first),
                ("another's gold", other),
            )
        ),
    ]


def _two_hops(item: KnownQuestion) -> list[Situation]:
    first, last = item.gold
    return [
        Situation("first passage", (first,), item.answer),
        Situation("last passage", (last,), item.answer),
        Situation("both", (first, last), item.answer),
    ]


def _told(
    inputs: SuiteInputs, item: KnownQuestion, situations: Sequence[Situation]
) -> dict[str, Gains]:
    """The gain of each situation by each meter."""
    meters: dict[str, UtilityMeter] = {SOFT: inputs.seper()}
    meters |= {name: inputs.gold_logprob(scale) for name, scale in GOLD.items()}
    return {
        each.kind: {name: _gain(meter, item.question, each) for name, meter in meters.items()}
        for each in situations
    }


def _gain(meter: UtilityMeter, question: Question, of: Situation) -> float | None:
    if of.evidence is None:
        return None
    asked = question.model_copy(update={"answers": (of.gold,)})
    before, after = meter.measure(asked, [(), of.evidence])
    return None if before.value is None or after.value is None else after.value - before.value


def _gains(inputs: SuiteInputs, name: str, title: str, told: Told) -> Table:
    bootstrap = Bootstrap(seed=inputs.seed)
    meters = (SOFT, *GOLD)
    rows: list[dict[str, Cell]] = []
    for kind in told[0]:
        columns = [
            column([each[kind][m] for each in told], reason="no question has this", binary=False)
            for m in meters
        ]
        means = estimates(columns, bootstrap)
        rows.append({"evidence": kind, **dict(zip(meters, means, strict=True))})
    headings = {"evidence": "", **{meter: meter for meter in meters}}
    return table(
        name,
        title,
        headings,
        rows,
        f"{counted(len(told), 'question')}; 95 % intervals: {bootstrap.method}",
    )


def _agreement(inputs: SuiteInputs, by_hops: Mapping[str, Told]) -> Table:
    rows: list[dict[str, Cell]] = []
    for hops, told in by_hops.items():
        gains = [(q, each) for q, kinds in enumerate(told) for each in kinds.values()]
        seper = [(q, each, truth) for q, each in gains if (truth := each[SOFT]) is not None]
        pairs = Pairs([truth for *_, truth in seper], [q for q, *_ in seper], inputs.seed)
        for name in GOLD:
            rows.append(
                {
                    "scale": f"{name}, {hops}",
                    "r": pairs.pearson([each[name] for _, each, _ in seper]),
                    "sign": _same_sign([(truth, each[name]) for _, each, truth in seper]),
                }
            )
    return table(
        "gold_agreement",
        f"Agreement with {SOFT}",
        {"scale": "", "r": "r", "sign": "same sign"},
        rows,
        f"signs where {SOFT} exceeds {CLEAR}; 95 % intervals of r: {Pairs((), (), 0).method}",
    )


def _same_sign(pairs: Sequence[tuple[float, float | None]]) -> Measurement:
    clear = [(one, other) for one, other in pairs if abs(one) > CLEAR and other is not None]
    if not clear:
        return Measurement(value=None, reason="SePer has no clear gain", estimator="share")
    same = sum(one * other > 0 for one, other in clear)
    return Measurement(value=same / len(clear), n=len(clear), estimator="share")
