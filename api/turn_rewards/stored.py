"""Turn rewards of stored runs: from their credits, without a model, or measured anew."""

import logging
from collections.abc import Iterator, Mapping

from hopscope.api.credit_runs import CreditArguments
from hopscope.api.creditings import Creditings
from hopscope.api.stored import ArmLabel
from hopscope.runtime import code_files
from hopscope.runtime.errors import HopscopeError
from hopscope.store.store import Store
from hopscope.tracing.rewards import turns
from hopscope.tracing.rewards.turns import Rule, TurnRewards

_log = logging.getLogger(__name__)


def known(
    store: Store, ids: Mapping[str, ArmLabel | None], *, meter: str, rule: Rule
) -> Iterator[TurnRewards]:
    """The rewards of runs from the credits that are stored, in order. A run without them has
    rewards of None."""
    name = code_files.stem(meter)
    for run_id in ids:
        run = store.load(run_id)
        found = turns.of_credits(run, store.credits(run_id), meter=name, rule=rule)
        reason = f"no credit by {name} and {rule} is stored"
        yield found or turns.unmeasured(run, reason, meter=name, rule=rule)


def measured(
    store: Store,
    ids: Mapping[str, ArmLabel | None],
    given: CreditArguments,
    *,
    meter: str,
    rule: Rule,
) -> Iterator[TurnRewards]:
    """The same, after a measurement of the runs that were not yet measured in this way. It is
    stored as that of `hopscope credit`.

    Raises:
        UsageError: the settings are not possible for any run.
    """
    creditings, name = Creditings(store, given), code_files.stem(meter)
    for number, (run_id, arm) in enumerate(ids.items(), start=1):
        if len(ids) > 1:
            _log.info(f"run {number} of {len(ids)}")
        creditings.of(run_id, arm)
        run = store.load(run_id)
        try:
            [done] = creditings.each({run_id: arm}, again=False)
        except HopscopeError as error:
            _log.warning(f"run {run_id[:12]} is not measured: {error}")
            yield turns.unmeasured(run, str(error), meter=name, rule=rule)
            continue
        found = turns.of_credits(run, done.found.credits, meter=name, rule=rule)
        reason = f"{name} is not shared by {rule}"
        yield found or turns.unmeasured(run, reason, meter=name, rule=rule)
