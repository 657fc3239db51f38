"""Configuration files: `hopscope.toml`, or `[tool.hopscope]` of pyproject.toml, sets defaults of
options.

Flags precede environment variables, these precede the file of the project, and this precedes the
user's own. In a file, the table of a command precedes the top, and a profile precedes both.

Invariant: a file that was found, not named, may come from whoever wrote the folder. It sets only
numbers, yes or no, choices and names of our own parts, so that no command runs its code, sends
anything to an address of it, or writes where it says.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_args

from hopscope.cli.options.help import EXAMPLES
from hopscope.runtime.choices import did_you_mean
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.literals import toml_table

NAME = "hopscope.toml"
SHARED = "pyproject.toml"
PROFILE = "profile"
LARGEST = 1_000_000
"""Bytes of a file that is read."""

COMMON = frozenset(
    """appraisal budget by checkpoint corpus counterfactual credit-budget cutoff db deterministic
    device dry-run entailment executor gold json k limit max-calls max-cost max-retrievals
    max-seconds max-tokens max-words meter metric mode name over overwrite policy prices
    prompts reader resamples retry-failed rule samples seed thinking threads threshold
    trace-content trace-file utility workers workflow""".split()  # noqa: SIM905
)
"""The keys at the top of a file: `max-tokens` is what HOPSCOPE_MAX_TOKENS is, for each command
that reads it."""
OWN_PARTS = {
    "corpus": "hopland",
    "entailment": "lexical|equivalence",
    "reader": "tiny|tiny:search",
}
"""The values that a found file may give for options that can name addresses or folders."""
NAMES = frozenset({"meter", "metric", "name", "policy", "preset", "rule", "table", "workflow"})
"""Options that name components, of which a found file gives plain names with plain options."""
PLAIN = r"[\w-]+(:[\w.]+=[\w-]+(\.\d+)?(,[\w.]+=[\w-]+(\.\d+)?)*)?"
PLAIN_OPTION = r"[\w.]+=[\w-]+(\.\d+)?"
GUARDED = frozenset({"again", "overwrite", "read_only", "retry_failed", "trace_content"})
"""Yes or no that replaces files, spends again or shows more than the user wanted."""
LIMITS = frozenset({"max-calls", "max-cost", "max-retrievals", "max-seconds", "max-tokens"})
"""Limits of spending, which a found file may lower below the user's own and not raise."""


@dataclass(frozen=True)
class ConfigFile:
    """A configuration file."""

    path: Path
    tables: Mapping[str, Any]
    trusted: bool
    """Whether the user named it or it is the user's own."""

    @property
    def name(self) -> str:
        """The path, from the working folder if it is below."""
        here = Path.cwd()
        return str(self.path.relative_to(here) if here in self.path.parents else self.path)


@dataclass(frozen=True)
class Setting:
    """The value of an option in a file."""

    key: str
    """The option's name, as on the command line without dashes."""
    value: Any
    file: ConfigFile
    table: str
    """As in `profile.lab.run`; empty for the top."""

    @property
    def place(self) -> str:
        return f"{self.file.name} [{self.table}]" if self.table else self.file.name

    def error(self, why: str) -> UsageError:
        return UsageError(f"{self.place}: {self.key}: {why}")


@dataclass(frozen=True)
class Configuration:
    """The files of a command, the user's own first."""

    files: tuple[ConfigFile, ...] = ()
    profile: str | None = None

    def settings(self, command: Any, path: tuple[str, ...]) -> dict[str, Setting]:
        """The values for a command's options, by parameter.

        Raises:
            UsageError: a key, a table or the profile is unknown, or a value of the wrong type.
        """
        options = keys(command)
        found: dict[str, Setting] = {}
        trusted: dict[str, Setting] = {}

        def put(parameter: Any, setting: Setting) -> None:
            if setting.file.trusted:
                trusted[parameter.name] = setting
            found[parameter.name] = _lower(setting, trusted.get(parameter.name))

        for file, tables, name in self._layers():
            for key, value in _values(file, tables, name, ()):
                if key not in COMMON:
                    hint = (
                        f"; it stands in the table of its command, as in [{'.'.join(path)}]"
                        if key in options
                        else did_you_mean(key, COMMON)
                    )
                    if key in EXAMPLES:
                        hint = f"; {key} is a table, as in [{key}]"
                    raise UsageError(f"{_place(file, name)}: unknown key {key}{hint}")
                parameter = options.get(key)
                if parameter is not None and _variable(key) in variables(parameter):
                    put(parameter, Setting(key, value, file, name))
            own, at = tables, name
            for depth, word in enumerate(path, 1):
                own, at = own.get(word, {}), f"{at}.{word}" if at else word
                if depth == 1 and word in COMMON and not isinstance(own, dict):
                    own = {}  # `db` at the top is the option, and the commands have no table
                for key, value in _values(file, own, at, path[:depth]):
                    if depth < len(path):
                        continue  # the group's own, which it has looked at
                    if key not in options:
                        raise UsageError(
                            f"{_place(file, at)}: unknown key {key}{did_you_mean(key, options)}"
                        )
                    put(options[key], Setting(key, value, file, at))
        used = {
            name: setting
            for name, setting in found.items()
            if not any(os.environ.get(each) for each in variables(by_name(command)[name]))
        }
        return {name: _typed(by_name(command)[name], setting) for name, setting in used.items()}

    def _layers(self) -> Iterator[tuple[ConfigFile, Mapping[str, Any], str]]:
        profiles: dict[str, None] = {}
        for file in self.files:
            named = file.tables.get(PROFILE, {})
            if not isinstance(named, dict) or not all(isinstance(t, dict) for t in named.values()):
                raise UsageError(f"{file.name}: profiles are tables, as in [profile.lab]")
            profiles |= dict.fromkeys(named)
            yield file, {key: own for key, own in file.tables.items() if key != PROFILE}, ""
        if self.profile is None:
            return
        if self.profile not in profiles:
            read = ", ".join(file.name for file in self.files) or "no file"
            raise UsageError(
                f"no profile {self.profile} in {read}{did_you_mean(self.profile, profiles)}"
            )
        for file in self.files:
            own = file.tables.get(PROFILE, {}).get(self.profile, {})
            yield file, own, f"{PROFILE}.{self.profile}"


def read(config: str | None, profile: str | None) -> Configuration:
    """The user's file, and the one named or else the one found.

    Raises:
        UsageError: a file cannot be read.
    """
    from platformdirs import user_config_path

    files = []
    own = user_config_path("hopscope") / NAME
    if own.is_file():
        files.append(_file(own, trusted=True))
    if config:
        if not Path(config).is_file():
            raise UsageError(f"--config {config}: there is no such file")
        files.append(_file(Path(config).absolute(), trusted=True))
    elif found := _found(Path.cwd()):
        files.append(found)
    return Configuration(tuple(files), profile)


def refusal(parameter: Any, setting: Setting) -> str | None:
    """Why a found file may not set this; None if it may."""
    given = setting.value if isinstance(setting.value, list) else [setting.value]
    if setting.file.trusted or all(_harmless(parameter, each) for each in given):
        return None
    return (
        "a file that is found, not named, may not say this, as it could run code, send data out or "
        f"replace files; name the file if you trust it (--config {setting.file.name} or "
        f"HOPSCOPE_CONFIG), or write it in your own file, {_users()}"
    )


def keys(command: Any) -> dict[str, Any]:
    """A command's options by their keys."""
    found: dict[str, Any] = {}
    for parameter in command.params:
        if parameter.param_type_name == "option" and parameter.expose_value:
            long = [flag for flag in parameter.opts if flag.startswith("--")]
            found |= {flag.lstrip("-"): parameter for flag in long or parameter.opts}
    return found


def by_name(command: Any) -> dict[str, Any]:
    """A command's options by the names of their parameters."""
    return {parameter.name: parameter for parameter in keys(command).values()}


def variables(parameter: Any) -> list[str]:
    """The environment variables of an option; some that hold several lines are named only in the
    help."""
    named = parameter.envvar or ()
    told = re.findall(r"HOPSCOPE_[A-Z0-9_]+", getattr(parameter, "help", None) or "")
    return [*([named] if isinstance(named, str) else named), *told]


def _lower(setting: Setting, own: Setting | None) -> Setting:
    """The setting, or the user's own if it is a limit that a found file raises."""
    values = (setting.value, own.value if own else None)
    comparable = all(type(value) in (int, float) for value in values)
    limited = setting.key in LIMITS and not setting.file.trusted
    return own if own and limited and comparable and setting.value > own.value else setting


def _harmless(parameter: Any, value: Any) -> bool:
    if parameter.name in GUARDED:
        return False
    if isinstance(value, bool | int | float):
        return True
    if issubclass(_kind(parameter), Enum):
        return True
    if ".py" in value:
        return False
    if parameter.name == "option":
        return bool(re.fullmatch(PLAIN_OPTION, value))
    if parameter.name in OWN_PARTS:
        return bool(re.fullmatch(OWN_PARTS[parameter.name], value))
    if parameter.name == "thinking":
        return bool(re.fullmatch(r"on|off|auto|\d+", value))
    return parameter.name in NAMES and bool(re.fullmatch(PLAIN, value))


def _typed(parameter: Any, setting: Setting) -> Setting:
    """The setting as the command line would give it."""
    kind = _kind(parameter)
    given = setting.value
    if parameter.multiple and not isinstance(given, list):
        given = [given]
    for each in given if parameter.multiple else [given]:
        if kind is bool:
            right, said = isinstance(each, bool), "true or false"
        elif kind is int:
            right, said = type(each) is int, "a whole number"
        elif kind is float:
            right, said = type(each) in (int, float), "a number"
        else:
            right, said = isinstance(each, str), "a text in quotes"
        if not right:
            raise setting.error(f"{each!r} is not {said}")
    return Setting(setting.key, given, setting.file, setting.table)


def _kind(parameter: Any) -> type:
    """The type of a value, of one of several where there may be several."""
    annotation = parameter.type_descriptor.annotation
    kind = get_args(annotation)[0] if parameter.multiple else annotation
    return kind if isinstance(kind, type) else str


def _values(
    file: ConfigFile, table: Any, name: str, path: tuple[str, ...]
) -> Iterator[tuple[str, Any]]:
    """The keys of a table that are no tables, which must be of commands."""
    if not isinstance(table, dict):
        raise UsageError(f"{file.name}: {name} is a table, as in [{name}]")
    inner = [" ".join((*path, key)) for key in table]
    commands = [known for known in EXAMPLES if known.split()[:-1] == list(path)]
    for key, whole in zip(table, inner, strict=True):
        if not isinstance(table[key], dict):
            yield key, table[key]
        elif whole not in EXAMPLES:
            raise UsageError(
                f"{_place(file, name)}: unknown table {key}{did_you_mean(whole, commands)}"
            )


def _place(file: ConfigFile, table: str) -> str:
    return f"{file.name} [{table}]" if table else file.name


def _variable(key: str) -> str:
    return f"HOPSCOPE_{key.upper().replace('-', '_')}"


def _users() -> Path:
    from platformdirs import user_config_path

    return user_config_path("hopscope") / NAME


def _found(folder: Path) -> ConfigFile | None:
    """The nearest file from a folder up to the root of its repository; only there if it is in
    none, as the folders above may belong to others."""
    above = [folder, *folder.parents]
    root = next((number for number, each in enumerate(above) if (each / ".git").exists()), 0)
    for each in above[: root + 1]:
        if (each / NAME).is_file():
            return _file(each / NAME, trusted=False)
        # Most files of this name belong to other programs, whose faults are not ours to tell.
        if (each / SHARED).is_file() and b"tool.hopscope" in _bytes(each / SHARED):
            return _file(each / SHARED, trusted=False)
    return None


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _text(path: Path) -> str:
    held = _bytes(path)
    if len(held) > LARGEST:
        raise UsageError(f"{path} is larger than {LARGEST:,} bytes: no configuration is")
    try:
        return held.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8") from None


def _file(path: Path, *, trusted: bool) -> ConfigFile:
    try:
        tables = toml_table(_text(path))
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    if path.name == SHARED:
        for key in ("tool", "hopscope"):
            tables = tables.get(key, {})
            if not isinstance(tables, dict):
                raise UsageError(f"{path}: {key} is a table, as in [tool.hopscope]")
    return ConfigFile(path, tables, trusted)
