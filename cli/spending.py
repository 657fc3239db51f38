"""What a run may spend, and who decides whether to retrieve."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopscope.cli import wiring
from hopscope.cli.spending_options import NATIVE
from hopscope.runtime.ledger import Limits
from hopscope.runtime.prices import Prices
from hopscope.runtime.types import Record, digest

if TYPE_CHECKING:
    from functools import partial

    from hopscope.runtime.ledger import Ledger
    from hopscope.runtime.ports import Policy


class Spending(Record):
    """As it was asked for: names and numbers."""

    policy: str = NATIVE
    limits: Limits = Limits()
    prices: Path | None = None

    def ledger(self, reader_name: str) -> "Ledger":
        """
        Raises:
            UsageError: the table of prices is broken, or a limit in money is set and it does not
                know the reader.
        """
        from hopscope.runtime.prices import prices

        return _ledger(self.limits, prices(self.prices), reader_name)


class Pinned(Record):
    """As it is kept with what goes on later: whole, so that no file can change it unseen."""

    policy: str = NATIVE
    digest: str | None = None
    """Of the file that the policy names; None where it names none."""
    limits: Limits = Limits()
    prices: Prices | None = None
    """Set exactly when there is a limit in money."""

    def ledger(self, reader_name: str) -> "Ledger":
        """
        Raises:
            UsageError: a limit in money is set, and the prices do not have the reader's.
        """
        return _ledger(self.limits, self.prices or Prices(), reader_name)

    def policy_for(self, *, workflow: str, reader_name: str) -> "Policy | None":
        """
        Raises:
            UsageError: as `policy`, or its file is no longer what it was.
        """
        found = policy(self.policy, workflow=workflow, reader_name=reader_name)
        if _digest(self.policy) != self.digest:
            from hopscope.runtime.errors import UsageError

            raise UsageError(f"policy {self.policy}: its file is no longer what it was")
        return found


def pin(spend: Spending) -> Pinned:
    """
    Raises:
        UsageError: there is no such policy or file, or the table of prices is broken.
    """
    from hopscope.runtime.prices import prices

    table = prices(spend.prices)
    return Pinned(
        policy=spend.policy,
        digest=_digest(spend.policy),
        limits=spend.limits,
        prices=None if spend.limits.cost is None else table,
    )


def _ledger(limits: Limits, table: Prices, reader_name: str) -> "Ledger":
    from hopscope.runtime.errors import UsageError
    from hopscope.runtime.ledger import Ledger

    price = table.of(reader_name)
    if limits.cost is not None and price.model is None:
        raise UsageError(
            f"--max-cost needs the price of {reader_name}, which no table tells: give "
            f'--prices FILE with [models] and "{reader_name}" = {{ input = 0.5, output = 1.5 }}'
        )
    return Ledger(limits, price)


def policy(spec: str, *, workflow: str, reader_name: str) -> "Policy | None":
    """The policy that a text names; None for `native`, which needs none.

    Raises:
        UsageError: there is no such policy, its settings are not those given, or it was learned for
            another workflow or reader.
    """
    if spec == NATIVE:
        return None
    found: Policy = _named(spec, {"workflow": workflow, "reader_name": reader_name})()
    return found


def _named(spec: str, provided: Mapping[str, Any]) -> "partial[Any]":
    """`NAME[:SETTING][,OPTION=VALUE]...`"""
    from hopscope.runtime import components
    from hopscope.tracing import policies

    named, *more = re.split(r",(?=[a-z_]+=)", spec)
    return components.named(policies, named, wiring.parse_pairs(more), provided=provided)


def check(spec: str) -> None:
    """Look for mistakes that can be told before anything is loaded.

    Raises:
        UsageError: there is no such policy, or its settings are not those given.
    """
    _file(spec)


def _file(spec: str) -> Path | None:
    """The file that a policy names."""
    settings = _named(spec, {"workflow": "", "reader_name": ""}).keywords.values()
    return next((value for value in settings if isinstance(value, Path)), None)


def _digest(spec: str) -> str | None:
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
