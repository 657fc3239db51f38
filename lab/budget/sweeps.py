"""Every policy at all its settings, on the same paths.

Learned policies never decide about questions that they have learned from: unless there are others
to learn from, the questions are dealt into two halves, and what is learned on one decides about the
other. Paths of one question are in one half.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopscope.lab.budget import classify, fit
from hopscope.lab.budget.calibrate import calibrate
from hopscope.lab.budget.fit import Fitting
from hopscope.lab.budget.frontier import FrontierComparison, Sweep, compare
from hopscope.lab.budget.paths import Path, simulate
from hopscope.lab.budget.stored import Walked
from hopscope.runtime import components
from hopscope.runtime.distinct import numbered
from hopscope.runtime.errors import ReaderError, UsageError
from hopscope.runtime.ports import Policy, Reader
from hopscope.runtime.specs import Spec
from hopscope.tracing import policies
from hopscope.tracing.policies.classifier import ClassifierPolicy
from hopscope.tracing.policies.tasr import Tasr
from hopscope.tracing.policies.value import ValuePolicy

SETTINGS: dict[str, tuple[str, ...]] = {
    "fixed": ("0", "1", "2", "3", "4"),
    "random": ("0.1", "0.3", "0.5", "0.7", "0.9"),
    "repeat": ("",),
    "margin": ("0.1", "0.3", "0.5", "0.7", "0.8", "0.9", "0.95", "0.99"),
    "entropy": ("0.02", "0.05", "0.1", "0.2", "0.4", "0.7", "1.0", "1.5"),
    "maxentropy": ("0.05", "0.1", "0.3", "0.6", "1.0", "1.5", "2.0", "2.5"),
    "logprob": ("-1.0", "-0.7", "-0.5", "-0.3", "-0.2", "-0.1", "-0.05", "-0.01"),
    "self_report": ("",),
    "flare": ("0.2", "0.4", "0.6", "0.8", "0.9", "0.95", "0.99"),
    "grogu": ("-0.2", "0.0", "0.05", "0.1", "0.3", "0.6"),
}
BUDGETS = 20
"""Of `value`."""
TASR = (0.1, 0.25, 0.5, 0.75, 0.9)


class Swept(NamedTuple):
    never: Sweep
    native: Sweep
    oracle: Sweep
    """The earliest stop of highest utility, known from the gold: the ceiling."""
    policies: list[Sweep]
    missing: dict[str, str]
    """Policies that could not be tried, and why."""

    def compared(
        self,
        by: Literal["tokens", "retrievals"] = "tokens",
        *,
        resamples: int = 1000,
        seed: int = 0,
    ) -> FrontierComparison:
        """The frontiers of all policies and of the oracle, and that of `value`, or else of the
        first policy, against each; see `frontier.compare`."""
        sweeps = [*self.policies, self.oracle, self.never, self.native]
        if by == "retrievals":
            sweeps = [each.by_retrievals for each in sweeps]
        *tried, never, native = sweeps
        return compare(
            tried,
            never=never,
            native=native,
            reference="value" if "value" not in self.missing else tried[0].policy,
            resamples=resamples,
            seed=seed,
        )


def sweep(
    walked: Sequence[Walked],
    reader: Reader,
    *,
    fitting: Fitting,
    train: Sequence[Path] = (),
    seed: int = 0,
    cached: float = 1.0,
    settings: Mapping[str, tuple[str, ...]] = SETTINGS,
    progress: Callable[[str], None] = lambda _: None,
) -> Swept:
    """All policies on all paths; `reader` should cache its replies.

    Args:
        train: other questions to learn from.
        cached: what a cached prompt token counts, as in the paths.
        settings: the policies without learning, by name.
    """
    paths = [each.path for each in walked]
    found: list[Sweep] = []
    missing: dict[str, str] = {}
    for name, values in settings.items():
        progress(name)
        try:
            tried = {setting: [_built(name, setting)] * len(walked) for setting in values}
            found.append(_simulated(name, tried, walked, reader, cached))
        except ReaderError as error:
            missing[name] = str(error)
    half = _halves(paths, seed)
    dealt = [[p for p, h in zip(paths, half, strict=True) if h != own] for own in (0, 1)]
    others = [list(train)] if train else dealt
    for name, learn in (("tasr", _tasr), ("classifier", _classifier), ("value", _value)):
        progress(name)
        try:
            learned = [learn(each, fitting) for each in others]
        except UsageError as error:
            missing[name] = str(error)
            continue
        tried = {
            setting: [learned[h % len(learned)][place][1] for h in half]
            for place, (setting, _) in enumerate(learned[0])
        }
        found.append(_simulated(name, tried, walked, reader, cached))
    return Swept(
        never=_ends("never", paths, lambda p: 0),
        native=_ends("native", paths, lambda p: p.retrievals),
        oracle=_ends("oracle", paths, lambda p: p.best),
        policies=found,
        missing=missing,
    )


def _halves(paths: Sequence[Path], seed: int) -> NDArray[np.int64]:
    """The half of each path, 0 or 1."""
    rows = numbered(path.question.text for path in paths)
    return np.random.default_rng(seed).permutation(len({*rows}))[rows] % 2


def _built(name: str, setting: str) -> Policy:
    policy: Policy = components.named(policies, Spec(name, setting))()
    return policy


def _simulated(
    name: str,
    tried: Mapping[str, Sequence[Policy]],
    walked: Sequence[Walked],
    reader: Reader,
    cached: float,
) -> Sweep:
    """At each setting, the policy of each question. One question goes through all settings before
    the next one, as they ask the reader the same and it keeps only what was rendered lately."""
    done = [
        [simulate(policy, each.path, each.moments, reader, cached=cached) for policy in policies]
        for each, *policies in zip(walked, *tried.values(), strict=True)
    ]
    figures = [[(each.tokens, each.utility, each.stop) for each in row] for row in done]
    tokens, utilities, stops = np.array(figures, float).transpose(2, 1, 0)
    labels = tuple(f"{name}:{setting}" if setting else name for setting in tried)
    return Sweep(name, labels, tokens, utilities, stops)


def _ends(name: str, paths: Sequence[Path], stop: Callable[[Path], int]) -> Sweep:
    """Stopping there without deciding about it."""
    stops = [stop(path) for path in paths]
    chosen = [path.stops[each] for path, each in zip(paths, stops, strict=True)]
    return Sweep(
        name,
        (name,),
        np.array([[each.tokens for each in chosen]], float),
        np.array([[each.utility for each in chosen]], float),
        np.array([stops], float),
    )


Settings = list[tuple[str, Policy]]


def _value(paths: Sequence[Path], fitting: Fitting) -> Settings:
    """At budgets from the least to the largest that is of use, as `fit` learns it for each."""
    outcomes = fit.try_prices(paths, fitting)
    least = min(each.tokens for each in outcomes)
    most = fit.choose(outcomes, inf).tokens
    found: Settings = []
    for rank, budget in enumerate(np.linspace(least, most, BUDGETS).tolist()):
        chosen = fit.choose(outcomes, max(least, budget))
        file = fit.mixed_file(chosen, utility="", seed=fitting.seed)
        found.append((str(rank), ValuePolicy(file, f"budget {rank}")))
    return found


def _tasr(paths: Sequence[Path], fitting: Fitting) -> Settings:
    calibration = calibrate(paths, workflow="", reader="")
    return [(f"{threshold:g}", Tasr(threshold, calibration)) for threshold in TASR]


def _classifier(paths: Sequence[Path], fitting: Fitting) -> Settings:
    return [("", ClassifierPolicy(classify.learn(paths, workflow="", reader="")))]
