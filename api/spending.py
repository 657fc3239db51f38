"""The limits and the policy of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopscope.api import parts
from hopscope.runtime.budget.ledger import Limits
from hopscope.runtime.budget.prices import Prices
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import Record, digest

if TYPE_CHECKING:
    from functools import partial

    from hopscope.runtime.budget.ledger import Ledger
    from hopscope.runtime.ports import Policy


class Spending(Record):
    """A policy by name, limits, and a file of prices."""

    policy: str = parts.NATIVE
    limits: Limits = Limits()
    prices: Path | None = None

    def ledger(self, reader_name: str) -> "Ledger":
        """
        Raises:
            UsageError: the table of prices is broken, or a limit in money is set and it does not
                have the reader.
        """
        from hopscope.runtime.budget.prices import prices

        return _ledger(self.limits, prices(self.prices), reader_name)


class Pinned(Record):
    """Spending as an experiment stores it, with contents or hashes of files, so that a changed file
    is noticed."""

    policy: str = parts.NATIVE
    digest: str | None = None
    """The hash of the policy's file; None if it has none."""
    limits: Limits = Limits()
    prices: Prices | None = None
    """Set exactly when there is a limit in money."""

    def ledger(self, reader_name: str) -> "Ledger":
        """
        Raises:
            UsageError: a limit in money is set, and the prices do not have the reader's.
        """
        return _ledger(self.limits, self.prices or Prices(), reader_name)

    def policy_for(
        self, *, workflow: str | None, reader_name: str, prompts: str | None = None
    ) -> "Policy | None":
        """
        Raises:
            UsageError: as `policy`, or its file has changed.
        """
        spec = Spec.parse(self.policy)
        found = policy(spec, workflow=workflow, reader_name=reader_name, prompts=prompts)
        if _digest(spec) != self.digest:
            from hopscope.runtime.errors import UsageError

            raise UsageError(f"policy {self.policy}: its file has changed; restore it")
        return found


def pin(spend: Spending) -> Pinned:
    """
    Raises:
        UsageError: there is no such policy or file, or the table of prices is broken.
    """
    from hopscope.runtime.budget.prices import prices

    table = prices(spend.prices)
    return Pinned(
        policy=spend.policy,
        digest=_digest(Spec.parse(spend.policy)),
        limits=spend.limits,
        prices=None if spend.limits.cost is None else table,
    )


def _ledger(limits: Limits, table: Prices, reader_name: str) -> "Ledger":
    from hopscope.runtime.budget.ledger import Ledger
    from hopscope.runtime.errors import UsageError

    price = table.of(reader_name)
    if limits.cost is not None and price.model is None:
        raise UsageError(
            f"a limit in money needs the price of {reader_name}, which no table has: give a table "
            f'(--prices FILE) with [models] and "{reader_name}" = {{ input = 0.5, output = 1.5 }}'
        )
    return Ledger(limits, price)


def policy(
    spec: Spec, *, workflow: str | None, reader_name: str, prompts: str | None = None
) -> "Policy | None":
    """The policy that a spec names; None for `native`, which needs none.

    Args:
        prompts: the name of the run's set; None if it is not known.

    Raises:
        UsageError: there is no such policy, its settings are not those given, or it was learned for
            another workflow or reader.
    """
    if spec == Spec(parts.NATIVE):
        return None
    given = {"workflow": workflow, "reader_name": reader_name, "prompts": prompts}
    found: Policy = _named(spec, given)()
    return found


def _named(spec: Spec, provided: Mapping[str, Any]) -> "partial[Any]":
    from hopscope.runtime import components
    from hopscope.tracing import policies

    return components.named(policies, spec, provided=provided)


def check(spec: Spec) -> None:
    """Report mistakes before anything is loaded.

    Raises:
        UsageError: there is no such policy, or its settings are not those given.
    """
    _file(spec)


def _file(spec: Spec) -> Path | None:
    """The file that a policy names."""
    settings = _named(spec, {"workflow": "", "reader_name": "", "prompts": None}).keywords.values()
    return next((value for value in settings if isinstance(value, Path)), None)


def _digest(spec: Spec) -> str | None:
    """
    Raises:
        UsageError: the file cannot be read.
    """
    file = _file(spec)
    if file is None:
        return None
    try:
        return digest(file.read_bytes().hex())
    except OSError as error:
        from hopscope.runtime.errors import UsageError

        raise UsageError(
            f"policy {file} cannot be read: {error.strerror}; make one with `hopscope budget fit`"
        ) from None
