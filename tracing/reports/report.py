"""The report of a run with the credits of one of its appraisals; see `records`.

A report shows one appraisal: by default the one that `appraised.shown` selects.
"""

from collections.abc import Iterable

from hopscope.runtime.budget.ledger import queries
from hopscope.runtime.budget.prices import Price, Prices
from hopscope.runtime.budget.prices import prices as shipped
from hopscope.runtime.types import (
    Appraisal,
    Credit,
    GameValues,
    Measurement,
    PairCounts,
    Provenance,
    Run,
    Step,
    Usage,
)
from hopscope.tracing.asking import cut_off
from hopscope.tracing.proxies import is_proxy
from hopscope.tracing.reports.appraised import selected_provenance
from hopscope.tracing.reports.contexts import contexts
from hopscope.tracing.reports.displays import display, leading, shown
from hopscope.tracing.reports.records import (
    AppraisalReport,
    CoalitionsReport,
    Gain,
    PassageReport,
    PassageUtility,
    RunReport,
    StepReport,
    StepUtility,
    Total,
    TotalUtility,
)

NAMED = ("level", "total", "trajectory", "shapley", "leave_one_out")
"""Rules with a field of their own in the records, and the values themselves."""
ALWAYS = ("seper", "grogu")
"""Meters that a report always names, measured or not: scripts look for them."""


class _Credits:
    """The credits of one appraisal by meter, rule, step and passage."""

    def __init__(self, credits: Iterable[Credit], provenance: Provenance | None) -> None:
        self._measurements = {
            (c.meter, c.rule, c.step, c.passage): c.measurement
            for c in credits
            if c.provenance == provenance
        }
        measured = dict.fromkeys(meter for meter, *_ in self._measurements)
        rules = dict.fromkeys(rule for _, rule, *_ in self._measurements)
        self.rules = tuple(rule for rule in rules if rule not in NAMED)
        """Rules without a field of their own in the records."""
        self.meters = tuple(dict.fromkeys([*ALWAYS, *shown(measured)]))
        """Meters that the report names."""
        self.baseline = {meter: display(meter).baseline for meter in self.meters}
        self.leading = leading(measured)

    def __call__(
        self, meter: str, rule: str, step: int | None, passage: str | None = None
    ) -> Measurement | None:
        return self._measurements.get((meter, rule, step, passage))


def _value(measurement: Measurement | None) -> float | None:
    return measurement.value if measurement else None


def _reason(*measurements: Measurement | None) -> str | None:
    return next((m.reason for m in measurements if m and m.reason), None)


def _dropped(*measurements: Measurement | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for m in measurements if m for key in m.dropped or ()))


def _cut_off(*measurements: Measurement | None) -> str | None:
    counts = (cut_off.replies(m.estimator) for m in measurements if m)
    return next(filter(None, counts), None)


def report(
    run: Run,
    credits: Iterable[Credit],
    appraisals: Iterable[Appraisal] = (),
    *,
    settings_hash: str | None = None,
    prices: Prices | None = None,
    games: Iterable[GameValues] = (),
) -> RunReport:
    """The report with the appraisal whose settings' hash begins with `settings_hash`, or else the
    one that `appraised.shown` selects. `prices` is the table of costs; None is the shipped one.

    Raises:
        UsageError: no appraisal, or more than one, has such a hash.
    """
    given = list(credits)
    hashes = list(dict.fromkeys(c.provenance.settings_hash for c in given))
    shown = selected_provenance(given, settings_hash)
    credit = _Credits(given, shown)
    values = list(games)
    table = shipped() if prices is None else prices
    return RunReport(
        id=run.id,
        question=run.question.text,
        golds=run.question.answers,
        workflow=run.workflow,
        answer=run.answer,
        status=run.status,
        stop_reason=run.stop_reason,
        error=f"{run.error.type}: {run.error.message}" if run.error else None,
        reader=run.reader,
        retriever=run.retriever,
        prompts=run.prompts,
        seed=run.seed,
        steps=tuple(_step(run, step, credit, table.of(run.reader)) for step in run.steps),
        total=_total(run, credit, table.of(run.reader)),
        appraisal=_appraisal(run, shown, hashes, list(appraisals), table, values)
        if shown
        else None,
        contexts=contexts(run, given, shown, values),
    )


def _appraisal(
    run: Run,
    shown: Provenance,
    hashes: list[str],
    appraisals: list[Appraisal],
    table: Prices,
    games: Iterable[GameValues],
) -> AppraisalReport:
    own = [a for a in appraisals if a.provenance == shown]
    counted = [a.pairs for a in own if a.pairs is not None]
    usage = sum((a.usage for a in own), Usage())
    return AppraisalReport(
        id=shown.settings_hash,
        **shown.model_dump(),
        proxy=is_proxy(run.reader, shown.reader),
        measured=max((a.measured for a in own), default=None),
        usage=usage,
        cost=_cost(table.of(shown.reader), usage),
        pairs=sum(counted, PairCounts()) if counted else None,
        seconds=sum(a.seconds for a in own),
        coalitions=_coalitions([game for game in games if game.provenance == shown]),
        others=tuple(name for name in hashes if name != shown.settings_hash),
    )


def _coalitions(games: list[GameValues]) -> CoalitionsReport | None:
    if not games:
        return None
    return CoalitionsReport(
        stored=sum(len(game.values) for game in games),
        measured=sum(game.measured for game in games),
        bytes=sum(game.size for game in games),
    )


def _step(run: Run, step: Step, credit: _Credits, price: Price) -> StepReport:
    utilities = {meter: _utility(step, meter, credit) for meter in credit.meters}
    return StepReport(
        index=step.index,
        name=step.name,
        kind=step.kind,
        query=step.query,
        output=step.output,
        passages=tuple(
            PassageReport(
                id=hit.passage.key,
                title=hit.passage.title,
                score=hit.score,
                new=hit.passage.key in step.new,
                credit=_passage(step, hit.passage.key, credit),
            )
            for hit in step.ranked
        ),
        dangling=step.dangling,
        usage=step.usage,
        cost=_cost(price, step.usage, queries(step)),
        seconds=step.seconds if run.timed else None,
        parse_ok=step.parse_ok,
        stop_reason=step.stop_reason,
        refused=tuple(
            sorted({name for e in step.exchanges for g in e.generations for name in g.refused})
        ),
        credit=utilities,
        per_1000_tokens=_per_1000_tokens(run, step, utilities.get(credit.leading or "")),
    )


def _utility(step: Step, meter: str, credit: _Credits) -> StepUtility | Gain | None:
    level, change = (credit(meter, rule, step.index) for rule in ("level", "trajectory"))
    others = {rule: credit(meter, rule, step.index) for rule in credit.rules}
    shares = {rule: measurement for rule, measurement in others.items() if measurement}
    if level is None and change is None and not (shares and credit.baseline[meter]):
        return None
    if not credit.baseline[meter]:
        return Gain(value=_value(level), delta=_value(change), reason=_reason(level, change))
    shapley, without = (credit(meter, rule, step.index) for rule in ("shapley", "leave_one_out"))
    return StepUtility(
        value=_value(level),
        delta=_value(change),
        low=change.low if change else None,
        high=change.high if change else None,
        shapley=_value(shapley),
        leave_one_out=_value(without),
        n=level.n if level else 0,
        reason=_reason(level, change, shapley, without, *shares.values()),
        dropped=_dropped(level, change),
        cut_off=_cut_off(level),
        shares={rule: share.value for rule, share in shares.items()},
    )


def _passage(step: Step, key: str, credit: _Credits) -> dict[str, PassageUtility | None] | None:
    utilities: dict[str, PassageUtility | None] = {}
    for meter in credit.meters:
        share = credit(meter, "shapley", step.index, key)
        without = credit(meter, "leave_one_out", step.index, key)
        if share is not None or without is not None:
            utilities[meter] = PassageUtility(
                shapley=_value(share),
                low=share.low if share else None,
                high=share.high if share else None,
                leave_one_out=_value(without),
                reason=_reason(share, without),
            )
    return {"seper": None, **utilities} if utilities else None


def _per_1000_tokens(run: Run, step: Step, utility: StepUtility | Gain | None) -> float | None:
    """The cost of a retrieval includes the reader's calls up to the next retrieval."""
    if not step.retrieved or not isinstance(utility, StepUtility):
        return None
    share = utility.delta if utility.shapley is None else utility.shapley
    usage = step.usage
    for later in run.steps[step.index + 1 :]:
        if later.retrieved:
            break
        usage += later.usage
    if share is None or usage.uncounted or usage.tokens == 0:
        return None
    return 1000 * share / usage.tokens


def _cost(price: Price, usage: Usage, queries: int = 0) -> float | None:
    return None if price.model is None else price.of(usage, queries=queries)


def _total(run: Run, credit: _Credits, price: Price) -> Total:
    return Total(
        usage=run.usage,
        cost=_cost(price, run.usage, sum(queries(step) for step in run.steps)),
        currency=price.currency,
        prices_read=price.read,
        seconds=run.seconds if run.timed else None,
        retrievals=len(run.retrievals),
        meters={meter: _whole(run, meter, credit) for meter in credit.meters},
    )


def _whole(run: Run, meter: str, credit: _Credits) -> TotalUtility | Gain | None:
    total = credit(meter, "total", None)
    if total is None:
        return None
    if not credit.baseline[meter]:
        return Gain(value=total.value, delta=total.value, reason=total.reason)
    before, last = credit(meter, "level", None), credit(meter, "level", len(run.steps) - 1)
    return TotalUtility(
        before=_value(before),
        after=_value(last),
        delta=total.value,
        low=total.low,
        high=total.high,
        n=total.n,
        reason=_reason(total, before, last),
        dropped=_dropped(total),
        cut_off=_cut_off(last, before),
    )
