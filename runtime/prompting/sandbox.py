"""The sandbox of templates: what they see, and how much they may do.

Each pass of a loop, each call of a macro or function and each included file counts towards
`PASSES`, and all text that a prompt makes towards its length. What a single expression makes is
bounded by the numbers and texts that it is given. A prompt that needs more is refused, as is one
that has run for `SECONDS`: a mistake in a template, such as loops within loops, ends with an error
instead of never.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from threading import local
from time import thread_time
from typing import Any, Final

from jinja2 import nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hopscope.runtime.prompting.nesting import weigh
from hopscope.runtime.types import Passage

SHOWN = frozenset(Passage.model_fields) | {"key", "content_hash"}
"""What templates see of a passage: its methods could read files and run code."""
LONGEST = 1_000_000
"""Characters, or items of a list, that an expression may repeat; also the largest number that a
function or a filter is given."""
POWER = 100
PRODUCT = 1_000_000_000
"""The most that the lengths of two texts or lists given to a macro may make together: it is the
length of each of them put into the other."""
WIDENING = frozenset({"expandtabs", "indent", "tojson"})
"""Methods and filters that put as many spaces as a number says into each line or at each tab."""
QUICK: Final = 100
"""Items that a filter goes through in the time of one pass."""
PASSES: Final = 100_000
"""Passes of all loops of a prompt, with its calls."""
TEXT: Final = 50_000_000
"""Characters of a prompt, beyond ten times those of its passages; also the most that a filter or a
text's method could make of what it is given."""
SECONDS: Final = 10.0
"""Of the processor, for one prompt."""
_PASSING, _JOINED = "passing of the sandbox", "joined by the sandbox"
_WEIGHED = "weighed by the sandbox"
"""Names of filters, which no template can write."""
_FIELD = re.compile(r"%(?:\([^()]*\))?[^%a-zA-Z]*|\{[^{}]*")
_WIDTH = re.compile(r"\d+")
WIDE: Final = 10_000_000
"""Characters that a format may ask for."""


@dataclass
class _Spent:
    """What a rendering has taken so far."""

    most: int
    """Characters that it may make."""
    until: float
    passes: int = 0
    characters: int = 0

    def say(self, characters: int) -> None:
        """
        Raises:
            SecurityError: the text is longer than a prompt may be.
        """
        self.characters += characters
        if self.characters > self.most:
            raise SecurityError(f"the prompt is longer than {self.most:,} characters")

    def pass_on(self, passes: int = 1) -> None:
        """
        Raises:
            SecurityError: that is more than a prompt may take.
        """
        self.passes += passes
        if self.passes > PASSES:
            raise SecurityError(
                f"the prompt takes more than {PASSES:,} passes of its loops and calls: are there "
                "loops within loops?"
            )
        if (passes > 1 or self.passes % 64 == 0) and thread_time() > self.until:
            raise SecurityError(f"the prompt takes longer than {SECONDS:g} seconds")


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja2's sandbox, which takes half of a rendering to look at passages and loops again and
    again: all that these show is safe. Threads share it."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=_said, **options)
        self.filters = {name: self._checked(name, each) for name, each in self.filters.items()}
        self.filters |= {_PASSING: _passing, _JOINED: _joined, _WEIGHED: _weighed}
        self.globals.pop("lipsum")
        self._here = local()

    @contextmanager
    def bounded(self, passages: Iterable[Passage]) -> Iterator[None]:
        """Render within the bounds of one prompt."""
        given = sum(len(passage.title) + len(passage.text) for passage in passages)
        self._here.spent = _Spent(most=TEXT + 10 * given, until=thread_time() + SECONDS)
        try:
            yield
        finally:
            self._here.spent = None

    @property
    def spent(self) -> _Spent | None:
        """Of the prompt that this thread renders; None while a template is compiled."""
        found: _Spent | None = getattr(self._here, "spent", None)
        return found

    def getattr(self, obj: Any, attribute: str) -> Any:
        if (type(obj) is Passage and attribute in SHOWN) or (
            type(obj) is LoopContext and not attribute.startswith("_")
        ):
            try:
                return getattr(obj, attribute)
            except AttributeError:
                pass
        return super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, Passage):
            return attr in SHOWN
        if isinstance(obj, str) and attr == "encode":  # nothing here measures bytes
            return False
        return not isinstance(obj, type) and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        found = super().wrap_str_format(value)
        if found is not None and is_wide(value.__self__):
            raise _too_large("format")
        return found

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            if is_wide(left):
                raise _too_large(operator)
            _check([left, *(right if isinstance(right, tuple) else (right,))])
        elif operator == "+" and isinstance(left, Sized) and (spent := self.spent):
            spent.say(len(left))
        elif operator in ("*", "**"):
            sizes = [each if isinstance(each, int | float) else len(each) for each in (left, right)]
            most = POWER if operator == "**" else LONGEST
            if max(map(abs, sizes)) > most or abs(sizes[0] * sizes[1]) > most:
                raise _too_large(operator)
        made = super().call_binop(context, operator, left, right)
        weigh(made)
        return made

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Jinja2's, with its names, which no argument can have."""
        of = getattr(__obj, "__self__", None)
        if isinstance(of, Extension):  # a tag
            return super().call(__context, __obj, *args, **kwargs)
        if spent := __self.spent:
            spent.pass_on()
        most = TEXT if isinstance(of, str) else PRODUCT
        _check(_sized(getattr(__obj, "__name__", ""), [of, *args, *kwargs.values()]), most)
        weigh(args, kwargs)
        return __self._told(super().call(__context, __obj, *args, **kwargs))

    def _generate(
        self,
        source: nodes.Template,
        name: str | None,
        filename: str | None,
        *rest: Any,
        **more: Any,
    ) -> str:
        _count(source)
        source.set_environment(self)
        return super()._generate(source, name, filename, *rest, **more)

    def _told(self, made: Any) -> Any:
        """What a call or a filter makes; texts count towards the prompt's length."""
        if isinstance(made, str) and (spent := self.spent):
            spent.say(len(made))
        weigh(made)
        return made

    def _checked(self, name: str, filter_: Callable[..., Any]) -> Callable[..., Any]:
        """The filter, which refuses numbers and texts that would make something too large."""
        first = 1 if hasattr(filter_, "jinja_pass_arg") else 0

        @wraps(filter_)
        def checked(*given: Any, **options: Any) -> Any:
            value, *rest = given[first:] or (None,)
            if spent := self.spent:
                listed = isinstance(value, list | tuple | dict | range)
                spent.pass_on(1 + (len(value) // QUICK if listed else 0))
            text = None if isinstance(value, int) else value
            _check(_sized(name, [text, *rest, *options.values()]), TEXT)
            if name == "format" and is_wide(str(value)):
                raise _too_large("format")
            return self._told(filter_(*given, **options))

        return checked


def is_wide(format_: str) -> bool:
    """Whether a format asks for ten million characters or more, in all its fields together."""
    widths = (number for field in _FIELD.findall(format_) for number in _WIDTH.findall(field))
    return sum(WIDE if len(number) > 7 else int(number) for number in widths) >= WIDE


@pass_context
def _said(context: Context, value: Any) -> Any:
    """A value that is part of the text."""
    weigh(value)
    text = str(value)
    if spent := _spent(context):
        spent.say(len(text))
    return text


@pass_context
def _passing(context: Context, characters: int) -> bool:
    """Count a pass, which says so many characters of the file itself; true."""
    if spent := _spent(context):
        spent.pass_on()
        spent.say(characters)
    return True


@pass_context
def _joined(context: Context, *parts: Any) -> str:
    """The operator `~`."""
    weigh(parts)
    texts = [str(part) for part in parts]
    if spent := _spent(context):
        spent.say(sum(map(len, texts)))
    return "".join(texts)


def _weighed(value: Any) -> Any:
    """A list, tuple or dictionary of a template."""
    weigh(value)
    return value


def _spent(context: Context) -> _Spent | None:
    sandbox = context.environment
    assert isinstance(sandbox, Sandbox)
    return sandbox.spent


def _count(tree: nodes.Template) -> None:
    """Make each loop, macro, block and file of the tree count its passes, each `~` its text, and
    each list what it holds."""
    for loop in tree.find_all(nodes.For):
        if loop.test is not None:
            loop.test = nodes.And(_pass(0), loop.test)
    kinds = (nodes.For, nodes.Macro, nodes.CallBlock, nodes.Block)
    parts: list[Any] = [tree, *tree.find_all(kinds)]
    for part in parts:
        own = sum(len(text.data) for text in part.find_all(nodes.TemplateData))
        part.body.insert(0, nodes.ExprStmt(_pass(own)).set_lineno(part.lineno))
    _replace(tree)


def _pass(characters: int) -> nodes.Expr:
    return nodes.Filter(nodes.Const(characters), _PASSING, [], [], None, None)


def _replace(node: nodes.Node) -> None:
    """Replace every `~` below a node by the filter that joins, and put lists, tuples and
    dictionaries through the one that weighs."""

    def by(value: Any) -> Any:
        listed = isinstance(value, nodes.List | nodes.Dict) or (
            isinstance(value, nodes.Tuple) and value.ctx == "load"
        )
        if listed:
            weighed = nodes.Filter(value, _WEIGHED, [], [], None, None)
            return weighed.set_lineno(value.lineno)
        if not isinstance(value, nodes.Concat):
            return value
        first, *rest = value.nodes
        found = nodes.Filter(first, _JOINED, rest, [], None, None)
        return found.set_lineno(value.lineno)

    for child in node.iter_child_nodes():
        _replace(child)
    for field, value in node.iter_fields():
        if isinstance(value, list):
            value[:] = map(by, value)
        elif isinstance(value, nodes.Expr):
            setattr(node, field, by(value))


def _sized(name: str, given: Sequence[Any]) -> Sequence[Any]:
    """What a method or filter is given; a number of spaces counts as a text of them."""
    if name not in WIDENING:
        return given
    return [*given, *(range(min(each, LONGEST)) for each in given if type(each) is int)]


def _check(given: Iterable[Any], most: int = PRODUCT) -> None:
    """
    Raises:
        SecurityError: what these make could be longer than `most`.
    """
    lengths = [1, 1]
    for each in given:
        if isinstance(each, int) and abs(each) > LONGEST:
            raise _too_large(f"{each:,}")
        if isinstance(each, str | list | tuple | dict | range):
            lengths.append(len(each))
    *_, shorter, longer = sorted(lengths)
    if shorter * longer > most:
        raise _too_large("the expression")


def _too_large(what: str) -> SecurityError:
    return SecurityError(f"{what} makes something too large for a prompt")
