"""Find components by name: a component is a module with a typed `build(...)`.

A new workflow, retriever, meter or credit rule is one new file in its package, or a folder whose
`__init__` defines `build`; there is no registry to edit. Names that begin with "_" are private. A
package with a `KIND` also has the components that other distributions offer by entry points (see
`runtime.entry_points`), and those in files that a user has named (see `runtime.code_files`).

Invariant: a component of ours is never replaced. One from elsewhere that has its name is listed
with the reason why it is not used.
"""

import ast
import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from pkgutil import ModuleInfo, iter_modules
from threading import Lock
from types import ModuleType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import (
    ByteSize,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from hopscope.runtime import code_files, entry_points
from hopscope.runtime.choices import did_you_mean
from hopscope.runtime.errors import UsageError
from hopscope.runtime.specs import Spec
from hopscope.runtime.validation import problem


def _bytes(given: Any, parse: ValidatorFunctionWrapHandler) -> Any:
    try:
        return parse(given)
    except ValidationError:
        raise ValueError("give a number of bytes, 0 or more, such as 512MB or 2GB") from None


Bytes = Annotated[ByteSize, WrapValidator(_bytes)]
"""The type of an option that is an amount of memory."""
Count = Annotated[int, Field(ge=1)]
"""The type of an option that is a count of at least one."""
Share = Annotated[float, Field(ge=0, le=1)]
"""The type of an option from 0 to 1: a probability, a similarity or a share."""
Nats = Annotated[float, Field(ge=0)]
"""The type of an option that an entropy is compared with."""
LogProbability = Annotated[float, Field(le=0)]
"""The type of an option that a log-probability is compared with."""


class ComponentEntry(NamedTuple):
    """A component, or a candidate that cannot be used."""

    name: str
    origin: str | None = None
    """The distribution that offers it, with its version; None for our own components."""
    problem: str | None = None
    """Why it cannot be used by this name."""


_parsing = Lock()


def statements(source: str) -> list[ast.stmt]:
    """The statements of a module. Threads parse in turn: Python 3.11 counts the depth of all their
    trees together, and raises SystemError if another thread runs while it makes one."""
    with _parsing:
        return ast.parse(source).body


def own(package: ModuleType) -> list[str]:
    """Our components of a package, sorted."""
    return sorted(
        module.name
        for module in iter_modules(package.__path__)
        if not module.name.startswith("_") and (not module.ispkg or _builds(package, module))
    )


@cache  # a source does not change while it runs
def _builds(package: ModuleType, folder: ModuleInfo) -> bool:
    """Whether a folder's `__init__` defines `build`, by its source: it is not imported."""
    spec = folder.module_finder.find_spec(f"{package.__name__}.{folder.name}", None)
    source = getattr(spec and spec.loader, "get_source", lambda name: None)(spec and spec.name)
    defined: set[str] = set()
    for node in statements(source or ""):
        match node:
            case ast.FunctionDef(name=name):
                defined.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]):
                defined.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                defined.add(name)
            case ast.ImportFrom(names=names):
                defined.update(alias.asname or alias.name for alias in names)
    return "build" in defined


def found(package: ModuleType) -> list[ComponentEntry]:
    """All components of a package, sorted, also those that cannot be used."""
    ours = own(package)
    kind = getattr(package, "KIND", None)
    offers = entry_points.offers(kind) if kind else []
    rivals: dict[str, list[str]] = {name: ["hopscope"] for name in ours}
    for offer in offers:
        rivals.setdefault(offer.name, []).append(offer.distribution)
    others = [
        ComponentEntry(offer.name, offer.distribution, _problem(offer, rivals[offer.name]))
        for offer in offers
    ]
    return sorted([*map(ComponentEntry, ours), *others], key=lambda each: each.name)


def _problem(offer: entry_points.Offer, rivals: list[str]) -> str | None:
    if not offer.name.isidentifier():
        return f"{offer.distribution} calls it so, but names are letters, digits and underscores"
    if rivals[0] == "hopscope":
        return f"{offer.distribution} offers it, but hopscope has one of that name, which is used"
    if len(rivals) > 1:
        return f"offered by {' and by '.join(rivals)}: uninstall all but one"
    return None


def names(package: ModuleType) -> list[str]:
    """The components of a package that can be used, sorted."""
    return [each.name for each in found(package) if each.problem is None]


def load(package: ModuleType, name: str) -> ModuleType:
    """The component's module.

    Raises:
        UsageError: the name is unknown; the message lists the known ones. Or the component comes
            from another distribution or a file, and cannot be used.
    """
    if code_files.is_code(name):
        return code_files.load(name)
    if name in own(package):
        module = import_module(f"{package.__name__}.{name}")
        if not callable(getattr(module, "build", None)):
            raise UsageError(f"{package.__name__}.{name} is no component: it has no build(...)")
        return module
    kind = getattr(package, "KIND", package.__name__.rpartition(".")[2])
    known = {each.name: each for each in found(package)}
    if name not in known:
        usable = [each.name for each in known.values() if each.problem is None]
        usable = sorted([*usable, *getattr(package, "VARIANTS", ())])
        meant = did_you_mean(name, usable)
        raise UsageError(f"no {name!r} among {kind}: choose from {', '.join(usable)}{meant}")
    if problem := known[name].problem:
        raise UsageError(f"{name} among {kind}: {problem}")
    [offer] = (offer for offer in entry_points.offers(kind) if offer.name == name)
    return entry_points.load(kind, offer)


def options(build: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The keyword-only parameters of `build`, which a user may set with `-o key=value`."""
    parameters = inspect.signature(build).parameters.values()
    return {p.name: p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def parse_options(build: Callable[..., Any], given: Mapping[str, str]) -> dict[str, Any]:
    """All options of `build`: the `given` ones parsed by their type, the others by default.

    Raises:
        UsageError: an option is unknown, or a value has the wrong type or range; infinity and NaN
            are refused.
    """
    known = options(build)
    hints = get_type_hints(build, include_extras=True)
    finite = ConfigDict(allow_inf_nan=False)
    resolved = {name: parameter.default for name, parameter in known.items()}
    for name, text in given.items():
        if name not in known:
            choices = ", ".join(known) or "none"
            meant = did_you_mean(name, known)
            raise UsageError(f"unknown option {name!r}: the options are {choices}{meant}")
        try:
            resolved[name] = TypeAdapter(hints[name], config=finite).validate_strings(text)
        except ValidationError as error:
            problems = ", or ".join(dict.fromkeys(map(problem, error.errors())))
            meant = did_you_mean(text, _words(hints[name]))
            raise UsageError(f"option {name}={text}: {problems}{meant}") from None
    return resolved


def _words(hint: Any) -> list[str]:
    """The texts that a type allows by name, also where it allows more."""
    if get_origin(hint) is Literal:
        return [each for each in get_args(hint) if isinstance(each, str)]
    return [word for each in get_args(hint) for word in _words(each)]


def named(
    package: ModuleType,
    spec: Spec,
    *,
    argument: str | None = None,
    provided: Mapping[str, Any] | None = None,
) -> partial[Any]:
    """`build` of the component that a spec names, with all its options.

    Args:
        argument: the option that the spec's argument is for; by default the first one.
        provided: objects that no text can name, by option; objects that the component does not
            take are ignored.

    Raises:
        UsageError: the component is unknown, or has other options.
    """
    build = load(package, spec.name).build
    known = options(build)
    objects = {name: value for name, value in (provided or {}).items() if name in known}
    where = argument or next((name for name in known if name not in objects), None)
    given = dict(spec.options)
    if spec.argument:
        if where is None or where not in known:
            raise UsageError(
                f"{spec}: {spec.name} takes nothing after its name; leave out :{spec.argument}"
            )
        if where in given:
            raise UsageError(
                f"{spec}: {where} is given twice, after the colon and by name; give it once"
            )
        given[where] = spec.argument
    if taken := given.keys() & objects.keys():
        raise UsageError(
            f"{spec}: {min(taken)} is not to be given, because it is the run's own; leave it out"
        )
    try:
        resolved = parse_options(build, given) | objects
    except UsageError as error:
        raise UsageError(f"{spec}: {error}") from None
    for name, value in resolved.items():
        if value is inspect.Parameter.empty:
            form = f":{name.upper()}" if name == where else f",{name}=VALUE"
            raise UsageError(f"{spec} needs {name}: give {spec.name}{form}")
    return partial(build, **resolved)
