"""The same passages and another reader: GroGU depends on the reader.

*readers*: the share of passages with different signs of utility by two readers, and of pairs of
passages in different order. *layouts*: the accuracy of each reader with the same ten passages in
the layout of its own GroGU or of the other's. A reader-independent utility of documents would have
no disagreement, and both layouts would be equally good.

Source: GroGU (2026), section 4.3, Figure 2 and Table 4.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from hopscope.lab.suites.figures import table
from hopscope.lab.suites.known import KnownQuestion
from hopscope.lab.suites.readings import (
    NO_ANSWER,
    SCORES,
    Context,
    Reading,
    Readings,
    clustered,
    column,
    compare,
    why_missing,
)
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.types import Measurement
from hopscope.tracing.meters.grogu.key_tokens import Score
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, differences, estimates

SHOWN = 10
"""Passages of a layout."""
MISSING = Measurement(value=None, reason="no other reader: name one with --other-reader")
ANY = "any"
HEADINGS: dict[str, str] = dict(SCORES)


def layouts(item: KnownQuestion, others: Context) -> list[Context]:
    """The gold passages before, between and after the others."""
    half = len(others) // 2
    return [
        (*item.gold, *others),
        (*others[:half], *item.gold, *others[half:]),
        (*others, *item.gold),
    ]


def readers(
    one: Readings, other: Readings | None, bootstrap: Bootstrap, asked: str = "one hop"
) -> Table:
    """The table `readers`, over the same contexts for both readers; `asked` names the questions."""
    rows: list[dict[str, Cell]] = []
    for score, name in SCORES:
        cells: Sequence[Cell] = (MISSING, MISSING)
        if other is not None:
            pairs = list(zip(one, other, strict=True))
            signs = [_differing(_signs(score, a), _signs(score, b)) for a, b in pairs]
            orders = [_differing(_orders(score, a), _orders(score, b)) for a, b in pairs]
            reason = why_missing([*one, *other], score)
            columns = [clustered(each, reason=reason) for each in (signs, orders)]
            cells = estimates(columns, bootstrap)
        rows.append({"score": name, "sign": cells[0], "order": cells[1]})
    return table(
        "grogu_readers",
        f"GroGU of the same passages by two readers: differing shares ({asked})",
        {"score": "score", "sign": "passages of other sign", "order": "pairs in other order"},
        rows,
        "each question with its gold passage, a distractor and a random one",
        f"95 % intervals: {bootstrap.method}",
    )


def by_layout(
    one: Readings, other: Readings | None, bootstrap: Bootstrap, asked: str = "two hops"
) -> Table:
    """The table `layouts`, over contexts that are layouts of the same passages."""
    rows: list[dict[str, Cell]] = []
    for name, own, foreign in (("reader", one, other), ("other reader", other, one)):
        mine = None if own is None else _answers(own, own)
        theirs = None if own is None or foreign is None else _answers(own, foreign)
        for by, found in (("itself", mine), ("the other", theirs)):
            rows.append({"answers": name, "by": by, **_rates(found, bootstrap)})
        rows.append({"answers": name, "by": "itself - the other", **_gain(mine, theirs, bootstrap)})
    return table(
        "grogu_layouts",
        f"Right answers from the same {SHOWN} passages laid out by GroGU ({asked})",
        {"answers": "answers", "by": "laid out by", **HEADINGS, ANY: "any layout"},
        rows,
        "the gold passages stand first, in the middle or last; any: the mean of the three",
        f"95 % intervals: clopper-pearson; of differences and of any: {bootstrap.method}",
    )


def _signs(score: Score, found: Sequence[Reading]) -> list[int | None]:
    values = [each.utility(score) for each in found]
    return [None if value is None else (value > 0) - (value < 0) for value in values]


def _orders(score: Score, found: Sequence[Reading]) -> list[int | None]:
    return [compare(score, one, other) for one, other in combinations(found, 2)]


def _differing(one: Sequence[int | None], other: Sequence[int | None]) -> list[float | None]:
    pairs = zip(one, other, strict=True)
    return [None if a is None or b is None else float(a != b) for a, b in pairs]


def _answers(answers: Readings, choice: Readings) -> dict[str, Column]:
    """Right answers with the layouts that `choice` has the highest utility for, by score; and with
    any layout."""
    found: dict[str, Column] = {
        score: column(
            [_best(score, *rows) for rows in zip(answers, choice, strict=True)],
            reason=why_missing(choice, score),
        )
        for score, _ in SCORES
    }
    means = [_mean(row) for row in answers]
    return found | {ANY: column(means, reason=NO_ANSWER, binary=False)}


def _best(score: Score, answers: Sequence[Reading], choice: Sequence[Reading]) -> bool | None:
    """Whether the answer is right with the layout of highest utility, of equal ones the first."""
    values = [each.utility(score) for each in choice]
    known = [value for value in values if value is not None]
    return answers[values.index(max(known))].right if len(known) == len(values) else None


def _mean(answers: Sequence[Reading]) -> float | None:
    known = [each.right for each in answers if each.right is not None]
    return sum(known) / len(known) if len(known) == len(answers) else None


def _rates(found: Mapping[str, Column] | None, bootstrap: Bootstrap) -> dict[str, Cell]:
    if found is None:
        return dict.fromkeys((*HEADINGS, ANY), MISSING)
    return dict(zip(found, estimates(list(found.values()), bootstrap), strict=True))


def _gain(
    mine: Mapping[str, Column] | None, theirs: Mapping[str, Column] | None, bootstrap: Bootstrap
) -> dict[str, Cell]:
    names = [name for name, _ in SCORES]
    if mine is None or theirs is None:
        return dict.fromkeys(names, MISSING)
    found = differences([(mine[name], theirs[name]) for name in names], bootstrap)
    return dict(zip(names, found, strict=True))
