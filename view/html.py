"""Pages and fragments by Jinja2, which escapes all that stands in them.

Invariant: no template marks stored text as safe. The only text that is not escaped is JSON of
`texts.script_json`, whose `<` is escaped as JSON does.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from hopscope.runtime.errors import MissingExtraError
from hopscope.runtime.types import Record
from hopscope.view.drawing import EXTRA
from hopscope.view.pictures.specification import Spec, table
from hopscope.view.texts import script_json, visible

if TYPE_CHECKING:
    from jinja2 import Environment, Template

DIGITS = 3
"""After the point, in tables behind pictures."""


class Drawn(NamedTuple):
    """A picture on a page, with the table behind it."""

    name: str
    spec: Spec
    link: Callable[[Mapping[str, Any]], str | None] | None = None
    """Where the mark of a row leads; None where no mark leads anywhere."""

    @property
    def linked(self) -> Spec:
        """The specification, whose rows have their link in `href`."""
        if self.link is None:
            return self.spec
        values = [{**row, "href": self.link(row)} for row in self.spec["data"]["values"]]
        return {**self.spec, "data": {"values": values}}

    @property
    def title(self) -> str:
        return str(self.spec["title"]["text"])

    @property
    def description(self) -> str:
        return str(self.spec["description"])

    @property
    def headings(self) -> dict[str, str]:
        return table(self.spec)[0]

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        return table(self.linked)[1]


@cache
def _environment() -> "Environment":
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise MissingExtraError("a page", EXTRA) from None

    made = Environment(
        loader=PackageLoader("hopscope.view"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: "" if value is None else value,
    )
    made.filters |= {
        "visible": visible,
        "number": number,
        "cell": cell,
        "script_json": lambda value: Markup(script_json(value)),
    }
    return made


def render(template: str, **values: Any) -> str:
    """The page or fragment of a template.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    return compiled(template).render(**values)


def compiled(template: str) -> "Template":
    """The template, which is compiled once.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    return _environment().get_template(template)


def asset(name: str) -> str:
    """The text of a file in `static`."""
    return files("hopscope.view").joinpath("static", name).read_text(encoding="utf-8")


def number(value: float | None, digits: int = 2, signed: bool = False) -> str:
    """A number for a page; a dash where it was not measured."""
    if value is None:
        return "-"
    return f"{value:{'+' if signed else ''},.{digits}f}"


def cell(value: Any) -> str:
    """A cell of a table: a plain value, or a number with its interval."""
    if isinstance(value, Record):
        value = value.model_dump()
    if isinstance(value, Mapping):
        low, high = value.get("low"), value.get("high")
        if value.get("value") is None:
            return visible(f"- {value.get('reason') or ''}", 200)
        around = "" if low is None or high is None else f" [{_short(low)}, {_short(high)}]"
        return f"{_short(value['value'])}{around}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return _short(value)
    return visible("-" if value is None else str(value), 400)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{DIGITS}g}"
