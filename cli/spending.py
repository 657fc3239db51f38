"""What a run may spend, and who decides whether to retrieve."""

from pathlib import Path
from typing import TYPE_CHECKING

from hopscope.cli.spending_options import NATIVE
from hopscope.runtime.ledger import Limits
from hopscope.runtime.types import Record

if TYPE_CHECKING:
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
        from hopscope.runtime.errors import UsageError
        from hopscope.runtime.ledger import Ledger
        from hopscope.runtime.prices import prices

        price = prices(self.prices).of(reader_name)
        if self.limits.cost is not None and price.model is None:
            raise UsageError(
                f"--max-cost needs the price of {reader_name}, which no table tells: give "
                f'--prices FILE with [models] and "{reader_name}" = {{ input = 0.5, output = 1.5 }}'
            )
        return Ledger(self.limits, price)


def policy(spec: str, *, workflow: str, reader_name: str) -> "Policy | None":
    """The policy that a text names; None for `native`, which needs none.

    Raises:
        UsageError: there is no such policy, its settings are not those given, or it was learned for
            another workflow or reader.
    """
    if spec == NATIVE:
        return None
    from hopscope.runtime import components
    from hopscope.tracing import policies

    provided = {"workflow": workflow, "reader_name": reader_name}
    found: Policy = components.named(policies, spec, provided=provided)()
    return found


def check(spec: str) -> None:
    """Look for mistakes that can be told before anything is loaded.

    Raises:
        UsageError: there is no such policy, or its settings are not those given.
    """
    from hopscope.runtime import components
    from hopscope.tracing import policies

    components.named(policies, spec, provided={"workflow": "", "reader_name": ""})
