"""A run and the credits of one of its appraisals put together: see `report_records`.

One appraisal at a time is shown, which is all credits with one provenance: shares of one seed do
not sum to the total of another. Which one, is the same here and in lists of runs: see `chosen`.
"""

from collections.abc import Iterable

from hopscope.runtime.errors import UsageError
from hopscope.runtime.ledger import queries
from hopscope.runtime.prices import Price, Prices
from hopscope.runtime.prices import prices as shipped
from hopscope.runtime.types import (
    Appraisal,
    Credit,
    Measurement,
    Pairs,
    Provenance,
    Run,
    Step,
    Usage,
)
from hopscope.tracing import cut_off
from hopscope.tracing.report_records import (
    AppraisalReport,
    PassageCredit,
    PassageReport,
    PassageSePer,
    RunReport,
    StepCredit,
    StepGroGU,
    StepReport,
    StepSePer,
    Total,
    TotalSePer,
)

SEPER, GROGU = "seper", "grogu"


def chosen(credits: Iterable[Credit]) -> Provenance | None:
    """Which of a run's appraisals is shown: the one measured last of those that measured the whole
    run, which are those with a `total` by any meter; else the one measured last.

    `credits` come in the order they were measured in, as from the store.
    """
    given = list(credits)
    whole = [credit for credit in given if credit.step is None and credit.rule == "total"]
    return next((credit.provenance for credit in reversed(whole or given)), None)


class _Credits:
    """Looks credits of one appraisal up by meter, rule, step and passage."""

    def __init__(self, credits: Iterable[Credit], provenance: Provenance | None) -> None:
        self._found = {
            (c.meter, c.rule, c.step, c.passage): c.measurement
            for c in credits
            if c.provenance == provenance
        }

    def __call__(
        self, meter: str, rule: str, step: int | None, passage: str | None = None
    ) -> Measurement | None:
        return self._found.get((meter, rule, step, passage))


def _value(measurement: Measurement | None) -> float | None:
    return measurement.value if measurement else None


def _reason(*measurements: Measurement | None) -> str | None:
    return next((m.reason for m in measurements if m and m.reason), None)


def _dropped(*measurements: Measurement | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for m in measurements if m for key in m.dropped or ()))


def _cut_off(*measurements: Measurement | None) -> str | None:
    told = (cut_off.replies(m.estimator) for m in measurements if m)
    return next(filter(None, told), None)


def report(
    run: Run,
    credits: Iterable[Credit],
    appraisals: Iterable[Appraisal] = (),
    *,
    settings_hash: str | None = None,
    prices: Prices | None = None,
) -> RunReport:
    """Put a run and the credits of one of its appraisals together: of the one whose settings' hash
    begins so, or else of the one `chosen`. `prices` is the table of costs; None is the shipped one.

    Raises:
        UsageError: no appraisal's settings have such a hash.
    """
    given = list(credits)
    hashes = list(dict.fromkeys(c.provenance.settings_hash for c in given))
    shown = chosen(given)
    if settings_hash is not None:
        meant = [name for name in hashes if name.startswith(settings_hash)]
        if len(meant) != 1:
            known = ", ".join(name[:8] for name in hashes) or "there are none"
            raise UsageError(f"{settings_hash!r} does not name one of the appraisals: {known}")
        shown = next(c.provenance for c in given if c.provenance.settings_hash == meant[0])
    credit = _Credits(given, shown)
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
        seed=run.seed,
        steps=tuple(_step(run, step, credit) for step in run.steps),
        total=_total(run, credit, table.of(run.reader)),
        appraisal=_appraisal(shown, hashes, list(appraisals), table) if shown else None,
    )


def _appraisal(
    shown: Provenance, hashes: list[str], appraisals: list[Appraisal], table: Prices
) -> AppraisalReport:
    own = [a for a in appraisals if a.provenance == shown]
    counted = [a.pairs for a in own if a.pairs is not None]
    usage = sum((a.usage for a in own), Usage())
    return AppraisalReport(
        id=shown.settings_hash,
        **shown.model_dump(),
        measured=max((a.measured for a in own), default=None),
        usage=usage,
        cost=_cost(table.of(shown.reader), usage),
        pairs=sum(counted, Pairs()) if counted else None,
        seconds=sum(a.seconds for a in own),
        others=tuple(name for name in hashes if name != shown.settings_hash),
    )


def _step(run: Run, step: Step, credit: _Credits) -> StepReport:
    level, change = credit(SEPER, "level", step.index), credit(SEPER, "trajectory", step.index)
    shapley = credit(SEPER, "shapley", step.index)
    without = credit(SEPER, "leave_one_out", step.index)
    seper = None
    if level or change:
        seper = StepSePer(
            value=_value(level),
            delta=_value(change),
            low=change.low if change else None,
            high=change.high if change else None,
            shapley=_value(shapley),
            leave_one_out=_value(without),
            n=level.n if level else 0,
            reason=_reason(level, change, shapley, without),
            dropped=_dropped(level, change),
            cut_off=_cut_off(level),
        )
    held, gained = credit(GROGU, "level", step.index), credit(GROGU, "trajectory", step.index)
    grogu = None
    if held or gained:
        grogu = StepGroGU(value=_value(held), delta=_value(gained), reason=_reason(held, gained))
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
        seconds=step.seconds,
        parse_ok=step.parse_ok,
        stop_reason=step.stop_reason,
        refused=tuple(
            sorted({name for e in step.exchanges for g in e.generations for name in g.refused})
        ),
        credit=StepCredit(seper=seper, grogu=grogu),
        per_1000_tokens=_per_1000_tokens(run, step, seper),
    )


def _passage(step: Step, key: str, credit: _Credits) -> PassageCredit | None:
    share = credit(SEPER, "shapley", step.index, key)
    without = credit(SEPER, "leave_one_out", step.index, key)
    if share is None and without is None:
        return None
    return PassageCredit(
        seper=PassageSePer(
            shapley=_value(share),
            low=share.low if share else None,
            high=share.high if share else None,
            leave_one_out=_value(without),
            reason=_reason(share, without),
        )
    )


def _per_1000_tokens(run: Run, step: Step, seper: StepSePer | None) -> float | None:
    """A retrieval's own cost is what it makes the reader read: all calls up to the next one."""
    if step.kind != "retrieve" or seper is None:
        return None
    share = seper.delta if seper.shapley is None else seper.shapley
    usage = step.usage
    for later in run.steps[step.index + 1 :]:
        if later.kind == "retrieve":
            break
        usage += later.usage
    if share is None or usage.uncounted or usage.tokens == 0:
        return None
    return 1000 * share / usage.tokens


def _cost(price: Price, usage: Usage, queries: int = 0) -> float | None:
    return None if price.model is None else price.of(usage, queries=queries)


def _total(run: Run, credit: _Credits, price: Price) -> Total:
    total, before = credit(SEPER, "total", None), credit(SEPER, "level", None)
    seper = None
    if total:
        last = credit(SEPER, "level", len(run.steps) - 1)
        seper = TotalSePer(
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
    gained = credit(GROGU, "total", None)
    return Total(
        usage=run.usage,
        cost=_cost(price, run.usage, sum(queries(step) for step in run.steps)),
        currency=price.currency,
        prices_read=price.read,
        seconds=run.seconds,
        retrievals=sum(step.query is not None for step in run.steps),
        seper=seper,
        grogu=StepGroGU(value=gained.value, delta=gained.value, reason=gained.reason)
        if gained
        else None,
    )
