"""Find components by file name: a component is a module with a typed `build(...)`.

A new workflow, retriever, meter or credit rule is one new file in its package; there is no
registry to edit. Files whose names begin with "_" are helpers.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Annotated, Any, get_type_hints

from pydantic import (
    ByteSize,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from hopscope.runtime.errors import UsageError


def _bytes(given: Any, parse: ValidatorFunctionWrapHandler) -> Any:
    try:
        return parse(given)
    except ValidationError:
        raise ValueError("give a number of bytes, 0 or more, such as 512MB or 2GB") from None


Bytes = Annotated[ByteSize, WrapValidator(_bytes)]
"""The type of an option that is an amount of memory."""
Count = Annotated[int, Field(ge=1)]
"""The type of an option that says how many: one at least."""
Share = Annotated[float, Field(ge=0, le=1)]
"""The type of an option that is a probability, a similarity, or another part of one."""


LISTED = {"answer_metrics": "metrics", "credit": "rules"}
"""Packages that `hopscope list` calls otherwise."""


def names(package: ModuleType) -> list[str]:
    """The components of a package, sorted."""
    return sorted(
        module.name
        for module in iter_modules(package.__path__)
        if not module.name.startswith("_") and not module.ispkg
    )


def load(package: ModuleType, name: str) -> ModuleType:
    """The component's module.

    Raises:
        UsageError: there is none of that name; the message lists those there are.
    """
    known = names(package)
    if name not in known:
        kind = package.__name__.rsplit(".", 1)[-1]
        kind = LISTED.get(kind, kind)
        raise UsageError(f"no {name!r} among {kind}: choose from {', '.join(known)}")
    module = import_module(f"{package.__name__}.{name}")
    if not callable(getattr(module, "build", None)):
        raise UsageError(f"{package.__name__}.{name} is no component: it has no build(...)")
    return module


def options(build: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The keyword-only parameters of `build`: what a user may set with `-o key=value`."""
    parameters = inspect.signature(build).parameters.values()
    return {p.name: p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def parse_options(build: Callable[..., Any], given: Mapping[str, str]) -> dict[str, Any]:
    """All options of `build`, those `given` read from text by their type, the others by default.

    Raises:
        UsageError: an unknown option, or a value that is not of its type or not in its range; no
            number is infinite or NaN.
    """
    known = options(build)
    hints = get_type_hints(build, include_extras=True)
    finite = ConfigDict(allow_inf_nan=False)
    resolved = {name: parameter.default for name, parameter in known.items()}
    for name, text in given.items():
        if name not in known:
            choices = ", ".join(known) or "none"
            raise UsageError(f"unknown option {name!r}: the options are {choices}")
        try:
            resolved[name] = TypeAdapter(hints[name], config=finite).validate_strings(text)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise UsageError(f"option {name}={text}: {reason}") from None
    return resolved


def named(
    package: ModuleType,
    spec: str,
    given: Mapping[str, str] | None = None,
    *,
    provided: Mapping[str, Any] | None = None,
) -> partial[Any]:
    """`build` of the component that a text names, `NAME` or `NAME:ARGUMENT`, with all its options.

    The argument is its first option. `provided` are objects that no text can
    name, by option; those that the component does not take are left out.

    Raises:
        UsageError: there is no such component, or its options are not those given.
    """
    name, _, argument = spec.partition(":")
    build = load(package, name).build
    objects = {n: value for n, value in (provided or {}).items() if n in options(build)}
    asked = dict(given or {})
    if argument:
        where = next((option for option in options(build) if option not in objects), None)
        if where is None:
            raise UsageError(f"{spec}: {name} takes nothing after its name")
        if where in asked:
            raise UsageError(f"{spec}: {where} is given twice")
        asked[where] = argument
    if taken := asked.keys() & objects.keys():
        raise UsageError(f"{spec}: {min(taken)} is not to be given: it is the run's own")
    resolved = parse_options(build, asked) | objects
    for option, value in resolved.items():
        if value is inspect.Parameter.empty:
            raise UsageError(f"{spec} needs {option}: give {name}:{option.upper()}")
    return partial(build, **resolved)
