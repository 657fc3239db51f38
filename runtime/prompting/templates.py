"""Renders prompts from templates in Jinja2.

A template says its messages by tags: `{% system %}`, `{% user %}` and `{% assistant %}` up to
`{% enduser %}` and so on, `{% reply %}` for the text that the reader continues, and for ReAct
`{% tools %}`, `{% calls %}` and `{% tool %}`. Text outside of them is refused.

White space: a line with nothing but a tag or a comment leaves no trace, and of a message on several
lines the last line break is no part. All else stands in the prompt as in the file.

Invariants: a value is text, never a template, so that no passage or question can make a message or
run anything; templates see the values alone (Jinja2's sandbox), and read no other files than those
of their set; an unknown name is an error, never an empty text; a rendering has an end.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, get_args

from jinja2 import (
    FunctionLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
    meta,
    nodes,
)
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context

from hopscope.runtime.errors import UsageError
from hopscope.runtime.prompting.sandbox import Sandbox
from hopscope.runtime.prompting.template_files import TemplateFile
from hopscope.runtime.types import Message, Passage, Prompt, Role

REPLY: Final = "reply"
ROLES: tuple[Role, ...] = get_args(Role)
_SAID = "messages of this prompt"
"""The name of the list of messages, which no template can write."""


class _Messages(Extension):
    """The tags that say messages."""

    tags = {*ROLES, REPLY}  # noqa: RUF012  # as Jinja2 wants it

    def parse(self, parser: Parser) -> nodes.Node:
        opening = next(parser.stream)
        body = parser.parse_statements((f"name:end{opening.value}",))
        several = parser.stream.current.lineno > opening.lineno
        next(parser.stream)
        arguments = [nodes.ContextReference(), nodes.Const(opening.value), nodes.Const(several)]
        call = self.call_method("_say", arguments)
        return nodes.CallBlock(call, [], [], body).set_lineno(opening.lineno)

    def _say(self, context: Context, role: str, several: bool, caller: Callable[[], str]) -> str:
        text = str(caller())
        context[_SAID].append((role, text.removesuffix("\n") if several else text))
        return ""


class Templates:
    """The templates of a set, each compiled when it is first rendered."""

    def __init__(self, found: Mapping[str, TemplateFile]) -> None:
        self._files = found
        self._paths = {file.path for file in found.values()}
        self._environment = Sandbox(
            loader=FunctionLoader(self._load),
            extensions=[_Messages],
            undefined=StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
        )

    def _load(self, name: str) -> tuple[str, str, Callable[[], bool]] | None:
        file = self._files.get(name)
        return None if file is None else (file.text, file.path, lambda: True)

    def render(self, name: str, passages: Sequence[Passage], values: Mapping[str, Any]) -> Prompt:
        """The prompt of a template, which shows `passages`.

        Raises:
            UsageError: the template fails; the message names the file and the line.
        """
        said: list[tuple[str, str]] = []
        try:
            template = self._environment.get_template(name)
            with self._environment.bounded(passages):
                outside = template.render({**values, "passages": passages, _SAID: said})
        except Exception as error:  # a template may raise whatever its expressions do
            raise UsageError(f"{self._place(error, name)}: {_reason(error)}") from error
        if outside.strip():
            raise UsageError(f"{self._outside(outside, name)} stands outside of any message")
        replies = [text for role, text in said if role == REPLY]
        if len(replies) > 1 or (replies and said[-1][0] != REPLY):
            raise UsageError(f"{self._files[name].path}: one reply may stand, after all messages")
        return Prompt(
            messages=tuple(
                Message(role=role, content=text)  # type: ignore[arg-type]  # the tags are roles
                for role, text in said
                if role != REPLY
            ),
            prefix=replies[0] if replies else "",
            shown=tuple(passage.key for passage in passages),
        )

    def parts(self, name: str) -> list[str]:
        """A template and all that it includes, directly or not.

        Raises:
            UsageError: one cannot be parsed, or is missing.
        """
        found: list[str] = []
        left = [name]
        while left:
            found.append(part := left.pop())
            for each in sorted(filter(None, meta.find_referenced_templates(self._parsed(part)))):
                if each not in self._files:
                    path = self._files[part].path
                    raise UsageError(
                        f"{path}, {self._line(part, each)}: no prompt is called {each}"
                    )
                if each not in found and each not in left:
                    left.append(each)
        return found

    def variables(self, name: str) -> dict[str, int]:
        """The values that a template asks for itself, without its parts, each with its first line.

        Raises:
            UsageError: it cannot be parsed.
        """
        tree = self._parsed(name)
        wanted = meta.find_undeclared_variables(tree)
        lines: dict[str, int] = {}
        for each in tree.find_all(nodes.Name):
            if each.name in wanted:
                lines[each.name] = min(each.lineno, lines.get(each.name, each.lineno))
        return lines

    def _parsed(self, name: str) -> nodes.Template:
        file = self._files[name]
        try:
            return self._environment.parse(file.text, name, file.path)
        except TemplateSyntaxError as error:
            raise UsageError(f"{file.path}, line {error.lineno}: {error.message}") from None

    def _line(self, name: str, text: str) -> str:
        lines = self._files[name].text.splitlines()
        found = (number for number, line in enumerate(lines, start=1) if text in line)
        return f"line {next(found, 1)}"

    def _place(self, error: BaseException, name: str) -> str:
        """The file and the line that an error comes from."""
        if isinstance(error, TemplateSyntaxError):
            return f"{error.filename}, line {error.lineno}"
        frames = traceback.extract_tb(error.__traceback__)
        inside = [frame for frame in frames if frame.filename in self._paths]
        if not inside:
            return self._files[name].path if name in self._files else name
        return f"{inside[-1].filename}, line {inside[-1].lineno}"

    def _outside(self, outside: str, name: str) -> str:
        told = f"{outside.strip().splitlines()[0][:60]!r}"
        lines = sorted(_loose(self._parsed(name)))
        line = f", line {lines[0]}" if lines else ""
        return f"{self._files[name].path}{line}: {told}"


def _loose(node: nodes.Node) -> Iterator[int]:
    """The lines of text and values outside of any message."""
    for child in node.iter_child_nodes():
        if isinstance(child, nodes.TemplateData):
            for number, line in enumerate(child.data.split("\n")):
                if line.strip():
                    yield child.lineno + number
        elif isinstance(node, nodes.Output):
            yield child.lineno
        elif not isinstance(child, nodes.CallBlock | nodes.AssignBlock):
            yield from _loose(child)


def _reason(error: Exception) -> str:
    if isinstance(error, TemplateNotFound):
        return f"no prompt is called {error.name}"
    if isinstance(error, TemplateError):
        return error.message or type(error).__name__
    return f"{type(error).__name__}: {error}"
