"""A promise in sentences."""

from collections.abc import Iterator

from hopscope.lab.budget.promises.checking import Check
from hopscope.runtime.texts.counting import counted
from hopscope.tracing.learned.promise import Promise, RiskBound


def told(promise: Promise) -> Iterator[str]:
    """The promise of a policy that was just learned."""
    costs = f"{amount(promise.cost_always)} {promise.unit}"
    if not promise.kept:
        yield (
            f"none of {promise.tried} prices keeps {promise} on "
            f"{counted(promise.calibrated, 'question')}: the policy always retrieves ({costs} per "
            "question)"
        )
        yield _needed(promise)
        return
    yield (
        f"promised: {promise}, by {counted(promise.calibrated, 'question')} that it has not "
        f"learned from; {amount(promise.cost)} {promise.unit} per question, where always "
        f"retrieving takes {costs}"
    )
    for each in promise.risks:
        yield f"  {bound(each)}"


def bound(found: RiskBound) -> str:
    risk = found.risk
    at_most = "no upper bound: too few questions"
    if found.upper is not None:
        at_most = f"at most {_number(found, found.upper)} with {risk.level:.4g} confidence"
    counted = f", counting up to {amount(found.cap)} per question" if found.cap is not None else ""
    return (
        f"{risk.name} {_number(found, found.found)} here, {at_most}{counted}; limit {risk.limit:g}"
    )


def _number(found: RiskBound, value: float) -> str:
    return _signed(value) if found.risk.measure == "loss" else amount(value)


def amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _needed(promise: Promise) -> str:
    if promise.needed is None:
        return (
            "  more calibration questions would not help: on these the risks were not within the "
            "limits at the price that is tested first; allow more, or learn from more questions"
        )
    return (
        f"  about {promise.needed:,} calibration questions would be needed if they were like these "
        f"{promise.calibrated}, as many more to learn from; or allow a larger loss"
    )


SHOWN = 5
"""Signals that moved; more are only counted."""


def checked(check: Check) -> Iterator[str]:
    """A promise on fresh questions, and what to do."""
    yield f"{check.verdict}: {check.promise} on {counted(check.questions, 'question')}"
    for each in check.risks:
        number = _signed if each.risk.startswith("loss") else amount
        yield (
            f"  {each.of} {number(each.found)}, from {number(each.low)} to {number(each.high)}, "
            f"each end with {each.level:.4g} confidence at all looks together; limit "
            f"{each.limit:g}: {each.verdict}"
        )
    yield f"  {_advice(check)}"
    yield (
        f"  {amount(check.cost)} {check.unit} per question, where always retrieving takes "
        f"{amount(check.cost_always)}"
    )
    yield f"  compared are {check.compared}"
    if check.readers is not None:
        promised, here = check.readers
        yield (
            f"  these runs are by {here}, and the promise is for {promised}, the only reader that "
            "takes the policy: `hopscope budget fit --adapt` makes one for another"
        )
    if check.prompts is not None:
        promised, here = check.prompts
        yield f"  these runs are with {here}, and the promise is for {promised}"
    yield from _drift(check)


def _advice(check: Check) -> str:
    if check.verdict == "kept":
        return "go on; you may look again at any time"
    if check.verdict == "broken":
        return (
            "do without the policy, and learn another from runs like these: `hopscope budget fit "
            "--guarantee`"
        )
    sizes = [each.needed for each in check.risks if each.verdict == "not yet known"]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return "measure more questions: the risk is so near to its limit that none can say how many"
    return f"measure more questions: about {max(known):,} in all if they go on like these"


def _drift(check: Check) -> Iterator[str]:
    if not check.signals:
        yield "drift: no signal has enough values to be compared"
        return
    against = f"those of the calibration ({counted(check.calibrated, 'question')})"
    if not check.moved:
        yield f"drift: none of {check.signals} signals differs from {against}"
        return
    yield (
        f"drift: {len(check.moved)} of {check.signals} signals differ from {against}: the promise "
        "was made for questions like those"
    )
    for each in check.moved[:SHOWN]:
        found = each.moved
        yield (
            f"  {each.signal}: median {found.before:.3g} then, {found.after:.3g} now; the "
            f"distributions differ by {found.distance:.2f} (p {found.p:.1g})"
        )


def _signed(value: float) -> str:
    return f"{value:+.3f}"
