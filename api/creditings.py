"""Credits of several stored runs, by default each with the settings of its run or experiment."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hopscope.api.credit_runs import CreditArguments, Crediting, CreditSettings, Defaults
from hopscope.api.stored import ArmLabel
from hopscope.api.views import credit_costs, what_if_table
from hopscope.api.views.credit_costs import CreditCost
from hopscope.api.views.rows import Rows
from hopscope.runtime.budget import prices as price_table
from hopscope.runtime.errors import HopscopeError
from hopscope.runtime.types import Run
from hopscope.store.store import Store
from hopscope.tracing.reports.appraised import Appraised
from hopscope.tracing.what_if.answers import WithoutRow, recall

_log = logging.getLogger(__name__)


class Credited(NamedTuple):
    """A measured run."""

    label: str
    """The label of its arm, else its workflow."""
    run: Run
    found: Appraised
    known: bool
    """Whether the same credits were stored already."""
    not_shared: dict[str, list[str]]
    """As in `Crediting.not_shared`."""


class Creditings:
    """One `Crediting` for each of the runs' different settings."""

    def __init__(self, store: Store, settings: CreditArguments | CreditSettings) -> None:
        """`CreditSettings` hold for all runs; `CreditArguments` take the defaults of each."""
        self._store = store
        self._settings = settings
        self._of_experiments: dict[str, CreditSettings] = {}
        self._made: list[tuple[CreditSettings, Crediting]] = []
        self._warned = False
        """Whether the user knows that another reader measures than ran."""

    def each(self, ids: Mapping[str, ArmLabel | None], *, again: bool) -> Iterator[Credited]:
        """Measure the runs in turn and store their credits. A run that cannot be measured is left
        out, with a warning.

        Args:
            ids: of runs, with the arm of those that an experiment names.
            again: measures again what has stored values or credits already.

        Raises:
            HopscopeError: the only run cannot be measured, or the settings fit no run.
        """
        for number, (run_id, arm) in enumerate(ids.items(), start=1):
            if len(ids) > 1:
                _log.info(f"run {number} of {len(ids)}")
            crediting = self.of(run_id, arm)
            try:
                run = self._store.load(run_id)
                known = crediting.known(self._store, run) if arm and not again else None
                if known is None:
                    self._warn_of_proxy(crediting, run)
                stored = () if again else self._store.games(run_id)
                found = known or crediting.credit(run, stored)
                if known is None:
                    self._store.save_credits(found.credits, [found.appraisal], found.games)
            except HopscopeError as error:
                if len(ids) == 1:
                    raise
                _log.warning(f"run {run_id[:12]} is not measured: {error}")
                continue
            label = arm.label if arm else run.workflow
            yield Credited(label, run, found, known is not None, crediting.not_shared(found, run))

    def without(self, run_id: str, names: Sequence[str]) -> Rows[WithoutRow]:
        """Measure a run without these steps and passages, store the values and compare them.

        Raises:
            HopscopeError: the run cannot be measured in this way, or has no such part.
        """
        run, crediting = self._store.load(run_id), self.of(run_id, None)
        self._warn_of_proxy(crediting, run)
        found = crediting.measure_without(run, names)
        self._store.save_credits([], [found.appraisal], found.games)
        provenance = found.appraisal.provenance
        return what_if_table.without(recall(run, provenance, self._store.games(run_id)), names)

    def costs(self, ids: Mapping[str, ArmLabel | None], prices: Path | None) -> Rows[CreditCost]:
        """What measuring the runs would cost; nothing is measured.

        Args:
            prices: a table of prices, whose rows precede the shipped ones.

        Raises:
            HopscopeError: a run cannot be measured in this way, or the table of prices is broken.
        """
        table = price_table.prices(prices)
        found: list[CreditCost] = []
        for run_id, arm in ids.items():
            crediting = self.of(run_id, arm)
            found += crediting.plan(self._store.load(run_id), table)
        return credit_costs.rows(found)

    def of(self, run_id: str, arm: ArmLabel | None) -> Crediting:
        """
        Raises:
            HopscopeError: the settings are not possible for any run.
        """
        wanted = self._wanted(run_id, arm)
        known = next((made for before, made in self._made if before == wanted), None)
        if known is None:
            known = Crediting(wanted)
            self._made.append((wanted, known))
        return known

    def _warn_of_proxy(self, crediting: Crediting, run: Run) -> None:
        """Once, however many runs there are; tables name the proxy for each."""
        remark = None if self._warned else crediting.proxy(run)
        if remark:
            _log.warning(remark)
            self._warned = True

    def _wanted(self, run_id: str, arm: ArmLabel | None) -> CreditSettings:
        if isinstance(self._settings, CreditSettings):
            return self._settings
        if arm is None:
            return self._settings.wanted(Defaults.of_run(self._store, run_id))
        if arm.experiment not in self._of_experiments:
            settings = self._store.experiments.find(arm.experiment).settings
            wanted = self._settings.wanted(Defaults.of_experiment(settings))
            self._of_experiments[arm.experiment] = wanted
        return self._of_experiments[arm.experiment]
