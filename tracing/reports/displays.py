"""The display of meters, rules and answer metrics: each component declares its own.

A meter declares its `DISPLAY`, a rule or metric may declare its `HEADING`. Our own modules are not
imported for it, because that may take seconds: the declaration is read from their source.
"""

import ast
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from hopscope.runtime import code_files, components, entry_points
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Display
from hopscope.tracing import answer_metrics, credit, meters

CONSTANT = "DISPLAY"


def display(meter: str) -> Display:
    """The display that the meter of this name declares; without a declaration, or if the meter is
    no longer installed, one with its name. A variant has its base's display and its options, or one
    of its own, which the base declares as `DISPLAY_` and its name."""
    base, options = meters.VARIANTS.get(meter, (meter, {}))
    varied = _declared(meters, base, f"{CONSTANT}_{meter.upper()}") if options else None
    if isinstance(varied, Display):
        return varied._replace(variant_of=base)
    declared = _declared(meters, base, CONSTANT)
    own = declared if isinstance(declared, Display) else Display(base)
    if not options:
        return own
    heading = f"{own.heading} ({', '.join(options.values())})"
    return own._replace(heading=heading, variant_of=base)


def rule_heading(rule: str) -> str:
    """The heading of a column of this rule's credits: its `HEADING`, else its name."""
    declared = _declared(credit, rule, "HEADING")
    return declared if isinstance(declared, str) else rule.replace("_", "-")


def metric_heading(metric: str) -> str:
    """The heading of a column of this answer metric: its `HEADING`, else its name."""
    declared = _declared(answer_metrics, metric, "HEADING")
    return declared if isinstance(declared, str) else metric


def shown(measured: Iterable[str]) -> list[str]:
    """The meters that a report shows, in order: default meters first, and no variant beside its
    base."""
    given = dict.fromkeys(measured)
    first = [meter for meter in meters.DEFAULT_METERS if meter in given]
    order = dict.fromkeys([*first, *given])
    return [meter for meter in order if meters.VARIANTS.get(meter, (None,))[0] not in given]


def leading(measured: Iterable[str]) -> str | None:
    """The meter that represents a run where there is room for one: the first shown whose changes
    can be shared, else the first shown."""
    order = shown(measured)
    return next((meter for meter in order if display(meter).baseline), next(iter(order), None))


def _declared(package: ModuleType, name: str, constant: str) -> object:
    """The value that a component assigns to a constant; None without one, or without the
    component."""
    if name in components.own(package):
        return _literal(f"{package.__name__}.{name}", constant)
    files = [code.name for code in code_files.known() if code_files.stem(code.name) == name]
    kind = str(vars(package)["KIND"])
    offered = [offer.name for offer in entry_points.offers(kind) if offer.name == name]
    for component in (*files, *offered):
        try:
            module = components.load(package, component)
        except UsageError:  # a component that cannot be imported still has stored values to show
            continue
        if hasattr(module, constant):
            return getattr(module, constant)
    return None


@cache
def _literal(module: str, constant: str) -> object:
    """The same for one of our own modules: a literal, or a `Display` of literals."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return None
    for node in components.statements(Path(spec.origin).read_text(encoding="utf-8")):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == constant:
                if not isinstance(value, ast.Call):
                    return ast.literal_eval(value)
                named = {k.arg: ast.literal_eval(k.value) for k in value.keywords if k.arg}
                return Display(*map(ast.literal_eval, value.args), **named)
    return None
