"""A promise in sentences."""

from collections.abc import Iterator

from hopscope.tracing.learned.promise import Promise, RiskBound


def told(promise: Promise) -> Iterator[str]:
    """The promise of a policy that was just learned."""
    costs = f"{amount(promise.cost_always)} {promise.unit}"
    if not promise.kept:
        yield (
            f"none of {promise.tried} prices keeps {promise} on {promise.calibrated} questions: "
            f"the policy always retrieves ({costs} per question)"
        )
        yield _needed(promise)
        return
    yield (
        f"promised: {promise}, by {promise.calibrated} questions that it has not learned from; "
        f"{amount(promise.cost)} {promise.unit} per question, where always retrieving takes {costs}"
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
    return f"{value:+.3f}" if found.risk.measure == "loss" else amount(value)


def amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _needed(promise: Promise) -> str:
    if promise.needed is None:
        return (
            "  more questions would not help: at no price were the risks of these questions within "
            "the limits; allow more, or learn from more questions"
        )
    return (
        f"  about {promise.needed:,} calibration questions would be needed if they were like these "
        f"{promise.calibrated}, as many more to learn from; or allow a larger loss"
    )
