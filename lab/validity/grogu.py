"""GroGU's Tables 1 to 4 in small: does the reader's confidence identify helpful passages?

- *wins* (Table 1): one-hop questions with their gold passage, with the best-ranked passage that
  lacks the answer (distractor), and with a random one; the share where GroGU is higher with gold.
- *contexts* and *concordance* (Tables 2 and 3): two-hop questions with their gold passages after
  four retrieved or four random ones. If only one of the two contexts gives the right answer, does
  it have the higher GroGU? Relevance always prefers the retrieved passages.
- *readers* and *layouts* (Table 4): see `lab.suites.two_readers`.

The paper's questions need one passage, and its readers get many wrong. The embedded reader hardly
misses a fact that it is shown, so the tables that need wrong answers use two hops.

Source: GroGU (2026), section 4. The paper does not state the gold passage's position in Table 3;
here it is last, next to the question.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hopscope.lab.suites import two_readers
from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs, worded
from hopscope.lab.suites.known import Need
from hopscope.lab.suites.readings import (
    NO_ANSWER,
    SCORES,
    Readings,
    column,
    compare,
    read,
    why_missing,
)
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Measurement
from hopscope.tracing.meters.grogu.key_tokens import Score
from hopscope.tracing.statistics import comparisons
from hopscope.tracing.statistics.averages import share
from hopscope.tracing.statistics.intervals import of_resamples
from hopscope.tracing.statistics.over_questions import Bootstrap, differences, estimates

RIVALS = {"distractor": 1, "random": 2}
"""Places of the contexts to compare with the gold passage, which has place 0."""
ALL_TOKENS: dict[Score, Score] = {"key_ppl": "ppl", "key_entropy": "entropy"}
"""The score over all tokens to compare each score over key tokens with."""
NEEDS = (Need.ANSWERS, Need.GOLD, Need.PASSAGES)
TAKES_CANDIDATES = True
METERS = ("grogu",)
VARIED = ("grogu.score",)
OTHERS = 4
"""Passages before the gold ones in Tables 2 and 3."""
RESAMPLES = 2000


class PairOutcome(NamedTuple):
    """A question with a right answer from one context and a wrong one from the other."""

    random_right: bool
    random_preferred: bool | None
    """The preference by utility; None if utilities are equal or one is missing."""


def build(inputs: SuiteInputs) -> list[Table]:
    few, more = inputs.near(1), inputs.near(2)
    one, two = inputs.questions(few), inputs.questions(more)
    alone = [inputs.single_passages(i)[1:] for i in one]
    mixed = [
        [(*draw(i, OTHERS), *i.gold) for draw in (inputs.distractors, inputs.unrelated)]
        for i in two
    ]
    rest = two_readers.SHOWN
    laid = [two_readers.layouts(i, inputs.distractors(i, rest - len(i.gold))) for i in two]
    bootstrap = Bootstrap(seed=inputs.seed)
    options = inputs.meter("grogu")
    read_alone, read_mixed = (
        read(inputs.reader, one, alone, options),
        read(inputs.reader, two, mixed, options),
    )
    read_laid = read(inputs.reader, two, laid, options)
    others_alone: Readings | None = None
    others_laid: Readings | None = None
    if inputs.other is not None:
        others_alone = read(inputs.other, one, alone, options)
        others_laid = read(inputs.other, two, laid, options)
    return [
        wins(read_alone, bootstrap, worded(few)),
        contexts(read_mixed, bootstrap, worded(more)),
        concordance(read_mixed, seed=inputs.seed, asked=worded(more)),
        two_readers.readers(read_alone, others_alone, bootstrap, worded(few)),
        two_readers.by_layout(read_laid, others_laid, bootstrap, worded(more)),
    ]


def wins(found: Readings, bootstrap: Bootstrap, asked: str = "one hop") -> Table:
    """Win rates. The contexts of each question are gold, distractor, random."""
    signs = {
        (score, rival): [compare(score, row[0], row[place]) for row in found]
        for score, _ in SCORES
        for rival, place in RIVALS.items()
    }
    won = {
        (score, rival): column(
            [None if sign is None else float(sign > 0) for sign in each],
            reason=why_missing(found, score),
        )
        for (score, rival), each in signs.items()
    }
    rates = dict(zip(won, estimates(list(won.values()), bootstrap), strict=True))
    compared = [(key, rival) for key in ALL_TOKENS for rival in RIVALS]
    pairs = [(won[key, rival], won[ALL_TOKENS[key], rival]) for key, rival in compared]
    gains = dict(zip(compared, differences(pairs, bootstrap), strict=True))
    rows: list[dict[str, Cell]] = [
        {
            "score": name,
            **{rival: rates[score, rival] for rival in RIVALS},
            **{f"{rival}_ties": signs[score, rival].count(0) for rival in RIVALS},
            **{f"{rival}_gain": gains.get((score, rival)) for rival in RIVALS},
        }
        for score, name in SCORES
    ]
    headings = {"": "gold over {}", "_ties": "ties with {}", "_gain": "keys - all tokens, {}"}
    return table(
        "grogu_wins",
        f"Win rates of GroGU with the gold passage over GroGU with another ({asked})",
        {"score": "score"}
        | {f"{r}{key}": text.format(r) for key, text in headings.items() for r in RIVALS},
        rows,
        "a tie is no win",
        f"95 % intervals: clopper-pearson; of differences: {bootstrap.method}",
    )


def contexts(found: Readings, bootstrap: Bootstrap, asked: str = "two hops") -> Table:
    """Accuracy. The contexts of each question have retrieved and random passages."""
    right = [column([row[place].right for row in found], reason=NO_ANSWER) for place in (0, 1)]
    rates = estimates(right, bootstrap)
    rows: list[dict[str, Cell]] = [
        {
            "beside": f"{OTHERS} {kind}",
            "right": rate,
            "only": sum(bool(row[place].right) and row[1 - place].right is False for row in found),
        }
        for place, (kind, rate) in enumerate(zip(("retrieved", "random"), rates, strict=True))
    ]
    return table(
        "grogu_contexts",
        f"Right answers from gold passages after other passages ({asked})",
        {"beside": "beside the gold", "right": "right", "only": "right with these only"},
        rows,
        "right: the answer contains a gold; 95 % intervals: clopper-pearson",
    )


def concordance(found: Readings, *, seed: int, asked: str = "two hops") -> Table:
    """Concordance. The contexts of each question have retrieved and random passages."""
    decided = [row for row in found if {row[0].right, row[1].right} == {True, False}]
    outcomes = {
        name: [
            PairOutcome(row[1].right is True, _higher(compare(score, row[1], row[0])))
            for row in decided
        ]
        for score, name in SCORES
    }
    outcomes["Relevance"] = [PairOutcome(row[1].right is True, False) for row in decided]
    return table(
        "grogu_concordance",
        f"Concordance of GroGU with right answers, where one of two contexts gives them ({asked})",
        {"score": "score", "tau": "tau", "accuracy": "accuracy", "f1": "macro-F1", "ties": "ties"},
        [{"score": name, **agreement(each, seed=seed)} for name, each in outcomes.items()],
        f"{len(decided)} of {counted(len(found), 'question has', 'questions have')} one right and "
        "one wrong answer",
        "equal utilities are ties and left out; 95 % intervals: clopper-pearson; of F1: "
        f"percentile bootstrap over questions, resamples={RESAMPLES}, seed={seed}",
    )


def agreement(outcomes: Sequence[PairOutcome], *, seed: int) -> dict[str, Cell]:
    """Kendall's tau, accuracy and macro-F1 of utility as a classifier of the right context."""
    kept = [each for each in outcomes if each.random_preferred is not None]
    tp, tn = kept.count(PairOutcome(True, True)), kept.count(PairOutcome(False, False))
    errors = len(kept) - tp - tn
    accuracy = share(
        tp + tn,
        len(kept),
        estimator="concordant by all (clopper-pearson)",
        missing="no question has one context right, one wrong, and unequal utilities",
    )
    return {
        "tau": _tau(tp + tn, errors, accuracy),
        "accuracy": accuracy,
        "f1": _macro_f1(tp, tn, errors, accuracy.reason, seed=seed),
        "ties": len(outcomes) - len(kept),
    }


def _higher(sign: int | None) -> bool | None:
    return sign > 0 if sign else None


def _tau(concordant: int, discordant: int, accuracy: Measurement) -> Measurement:
    """Kendall's tau: 2·accuracy - 1, and the same for the ends of the interval."""
    low, high = accuracy.low, accuracy.high
    return Measurement(
        value=comparisons.kendall(concordant, discordant),
        reason=accuracy.reason,
        n=accuracy.n,
        estimator="(C - D)/(C + D) (clopper-pearson)",
        low=None if low is None else 2 * low - 1,
        high=None if high is None else 2 * high - 1,
    )


def _macro_f1(tp: int, tn: int, errors: int, missing: str | None, *, seed: int) -> Measurement:
    value, n = comparisons.macro_f1(tp, tn, errors), tp + tn + errors
    if value is None:
        why = missing or "a class neither occurs nor was predicted"
        return Measurement(value=None, reason=why, n=n, estimator="macro-F1")
    # A draw of questions with replacement is a multinomial draw of the counts of outcomes.
    shares = np.array([tp, tn, errors]) / n
    drawn = np.random.default_rng(seed).multinomial(n, shares, RESAMPLES).tolist()
    values = [f1 for each in drawn if (f1 := comparisons.macro_f1(*each)) is not None]
    low, high = of_resamples(values) or (None, None)
    return Measurement(
        value=value,
        n=n,
        seed=seed,
        estimator=f"macro-F1 (percentile bootstrap over questions, resamples={RESAMPLES})",
        low=low,
        high=high,
    )
