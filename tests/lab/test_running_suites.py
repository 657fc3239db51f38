"""The order and the time of suites that run one after the other."""

from hopscope.lab import validity
from hopscope.lab.running_suites import SECONDS, Clock, seconds
from hopscope.runtime import components


def test_how_long_it_takes_is_told_before_and_by_what_is_done() -> None:
    """It took 38 minutes and said nothing."""
    clock = Clock(["eor", "item"], 100)
    assert clock.before(embedded=True).startswith("2 suites: eor, item; about ")
    assert "the first suite will show the time" in clock.before(embedded=False)
    # Twice as slow as guessed: so is the rest.
    left = 2 * seconds("item", 100)
    told = clock.after("eor", 2 * seconds("eor", 100))
    assert told.endswith(f"1 left, about {left / 60:.0f} min"), told
    assert clock.after("item", 3.0) == "suite item: 3 s"


def test_every_suite_has_been_timed() -> None:
    assert SECONDS.keys() == set(components.names(validity))
