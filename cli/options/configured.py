"""Commands whose options take their defaults from configuration files.

Every command takes the program's `--config` and `--profile`; its help does not repeat them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, get_args

import typer

from hopscope.cli.options import configuration
from hopscope.cli.options.help import Command, Group
from hopscope.runtime.choices import did_you_mean
from hopscope.runtime.texts.storable import bounded, lines

OF_THE_PROGRAM = ("config", "profile")
READ = "hopscope.configuration"
"""The key of a context's configuration in its `meta`."""


class _Configured:
    """What a command and a group of commands have in common."""

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)  # type: ignore[misc]
        for parameter in _of_the_program(ctx):
            parameter.add_to_parser(parser, ctx)
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take from files what neither the command line nor the environment gives."""
        with _harmless():
            return self._parsed(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with _harmless():
            return super().invoke(ctx)  # type: ignore[misc]

    def _parsed(self, ctx: Any, args: list[str]) -> list[str]:
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        settings: dict[str, configuration.Setting] = {}
        if ctx.parent is not None and not ctx.resilient_parsing and not given.get("help"):
            settings = _settings(self, ctx, given)
            ctx.default_map = {name: setting.value for name, setting in settings.items()}
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc,no-any-return]
        except typer.BadParameter as error:
            error.message = _told(error)
            name = error.param.name if error.param else ""
            source = ctx.get_parameter_source(name)
            if source is not None and source.name == "DEFAULT_MAP":
                raise settings[name].error(error.message) from None
            raise


class ConfiguredCommand(_Configured, Command):
    """A command whose options take their defaults from configuration files."""


class ConfiguredGroup(_Configured, Group):
    """A group of commands, whose own options do so, too."""


class ArgumentGroup(ConfiguredGroup):
    """A group that takes arguments of its own, unless its first word is one of its commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] and args[0] in self.commands:
            super().parse_args(ctx, [])
            # What the library's own does with words that no argument takes.
            ctx._protected_args, ctx.args = args[:1], args[1:]
            return args[1:]
        ctx.allow_interspersed_args = True
        return super().parse_args(ctx, args)


@contextmanager
def _harmless() -> Iterator[None]:
    """Of wrong use: the library's errors repeat what was given, which a terminal might obey, and
    print themselves."""
    try:
        yield
    except Exception as error:
        if isinstance(said := getattr(error, "message", None), str):
            error.message = bounded(lines(said))  # type: ignore[attr-defined]
        raise


def _told(error: typer.BadParameter) -> str:
    """What is wrong, with the choice that is most like what was given."""
    from pydantic import ValidationError

    from hopscope.runtime.validation import problem

    refused = error.__cause__
    if not isinstance(refused, ValidationError):
        return error.message
    hint = error.param.type_descriptor.annotation  # type: ignore[union-attr]
    detail = refused.errors()[0]
    choices = [
        str(member.value)
        for each in (hint, *get_args(hint))
        if isinstance(each, type) and issubclass(each, Enum)
        for member in each
    ]
    meant = did_you_mean(str(detail["input"]), choices)
    return f"{problem(detail).removesuffix('.')}{meant}" if choices else error.message


def _of_the_program(context: Any) -> list[Any]:
    if context.parent is None:
        return []
    root = context.find_root().command
    return [each for each in root.params if each.name in OF_THE_PROGRAM]


def _settings(
    command: Any, context: Any, given: dict[str, Any]
) -> dict[str, configuration.Setting]:
    asked = context.find_root().params
    config, profile = (given.get(name) or asked.get(name) for name in OF_THE_PROGRAM)
    words: list[str] = []
    at = context
    while at.parent is not None:
        words.insert(0, at.info_name)
        at = at.parent
    context.meta[READ] = configuration.read(config, profile)
    found = context.meta[READ].settings(command, tuple(words))
    used = {name: setting for name, setting in found.items() if given.get(name) is None}
    for name, setting in used.items():
        refused = configuration.refusal(configuration.by_name(command)[name], setting)
        if refused:
            raise setting.error(refused)
    return used
