"""The remark on measurements by another reader than the one that ran."""

import pytest

from hopscope.tracing.proxies import is_proxy, told, told_of_runs


@pytest.mark.parametrize(
    ("ran", "proxy", "remark"),
    [
        ("large", None, None),
        ("small", True, "measured by the proxy large; the reader that ran is small"),
        ("", None, "measured by large; the reader that ran is unknown"),
    ],
)
def test_a_run_has_a_remark_unless_its_own_reader_measured(
    ran: str, proxy: bool | None, remark: str | None
) -> None:
    """An unknown reader is neither the same nor another one."""
    assert is_proxy(ran, "large") is (False if ran == "large" else proxy)
    assert told(ran, "large") == remark


def test_runs_of_several_readers_have_one_remark() -> None:
    assert told_of_runs({"large": 3}, "large") is None
    assert told_of_runs({}, "large") is None
    assert told_of_runs({"": 1, "large": 3, "small": 2}, "large") == (
        "measured by large: the own reader of 3 runs, a proxy for small in 2 runs, "
        "the reader of 1 run is unknown"
    )
