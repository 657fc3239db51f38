"""What the tests of commands share."""

import pytest

from hopscope.cli.views.notes import attach


@pytest.fixture(autouse=True, scope="session")
def the_log_is_printed() -> None:
    """As `main` has it, which tests pass by where they invoke a command in this process."""
    attach()


@pytest.fixture(autouse=True)
def quickly(workers_that_start_quickly: None) -> None:
    """For all of them."""
