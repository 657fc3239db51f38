"""The options of suites: those of presets, and the user's own, which precede them.

A suite says in `METERS` and `WORKFLOWS` whose options it takes; one that does not takes SePer's.
`VARIED` names the options, as `item.m`, that it sets itself, whatever a preset says. An option is
written `OWNER.KEY=VALUE`, or `KEY=VALUE` for every workflow of the suites that has it.
"""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from hopscope import workflows
from hopscope.api import parts
from hopscope.api.presets import Preset, Presets
from hopscope.runtime import components
from hopscope.runtime.errors import UsageError
from hopscope.tracing import meters

USED = ("seper",)
"""The meters of a suite that names none."""
OWN = "-o"


class Owners:
    """The meters and workflows whose options some suites take."""

    def __init__(self, suites: Sequence[ModuleType]) -> None:
        self.meters = _distinct(suites, "METERS", USED)
        self.workflows = _distinct(suites, "WORKFLOWS", ())
        self._varied = _varied(suites)

    @property
    def names(self) -> str:
        return ", ".join([*self.meters, *self.workflows]) or "none"

    def chosen(
        self, presets: Sequence[str], options: Sequence[str], prompts: str | None = None
    ) -> Presets:
        """The presets, and last the user's own options.

        Args:
            prompts: a set, or its folder, for all workflows and meters.

        Raises:
            UsageError: there is no such preset or option, a preset sets nothing here, or a value is
                wrong.
        """
        named = Presets.named(presets, prompts)
        named.check(meters=self.meters, workflows=self.workflows)
        found = Presets(named.chosen, named.prompts, self._own(options))
        for meter in self.meters:
            texts = found.of_meters([meter])
            _check(
                meter,
                components.load(meters, meter).build,
                {key.partition(".")[2]: text for key, text in texts.items()},
            )
        for name in self.workflows:
            _check(name, components.load(workflows, name).build, found.of_workflow(name))
        return found

    def told(self, chosen: Presets) -> str:
        """All options that are set, for the record; empty without any."""
        of_workflows = {
            f"{name}.{key}": text
            for name in self.workflows
            for key, text in chosen.of_workflow(name).items()
        }
        options = {**chosen.of_meters(self.meters), **of_workflows}
        if chosen.prompts and not any(key.endswith(f".{parts.PROMPTS}") for key in options):
            options[parts.PROMPTS] = chosen.prompts  # of a suite that asks the reader itself
        return ", ".join(
            f"{key}={text}" for key, text in options.items() if key not in self._varied
        )

    def _own(self, options: Sequence[str]) -> tuple[Preset, ...]:
        found: dict[str, dict[str, dict[str, Any]]] = {"meters": {}, "workflows": {}}
        for given in options:
            path, equals, value = given.partition("=")
            owner, dot, key = path.rpartition(".")
            if not (equals and key):
                raise UsageError(
                    f"-o {given}: write OWNER.KEY=VALUE, as in item.judgment=pointwise"
                )
            if dot:
                owners = [owner]
            else:
                builds = {name: components.load(workflows, name).build for name in self.workflows}
                owners = [
                    name for name, build in builds.items() if key in components.options(build)
                ]
            if not owners or (dot and owner not in {*self.meters, *self.workflows}):
                raise UsageError(
                    f"-o {given}: nothing in these suites has that option; they take those of "
                    f"{self.names}"
                )
            owners = [name for name in owners if f"{name}.{key}" not in self._varied]
            if not owners:
                raise UsageError(f"-o {given}: these suites set {key} themselves; leave it out")
            for name in owners:
                kind = "meters" if name in self.meters else "workflows"
                found[kind].setdefault(name, {})[key] = value
        own = Preset(name=OWN, about="the user's own options", source="", **found)
        return (own,) if options else ()


def _check(owner: str, build: Callable[..., Any], texts: Mapping[str, str]) -> None:
    own = {key: text for key, text in texts.items() if key != parts.PROMPTS}
    try:
        components.parse_options(build, own)
    except UsageError as error:
        raise UsageError(f"{owner}: {error}") from None


def _varied(suites: Sequence[ModuleType]) -> frozenset[str]:
    """The options that each suite with the owner sets itself: another may take them."""
    owned = [
        (
            {*getattr(suite, "METERS", USED), *getattr(suite, "WORKFLOWS", ())},
            set(getattr(suite, "VARIED", ())),
        )
        for suite in suites
    ]
    named = set[str]().union(*(varied for _, varied in owned))
    return frozenset(
        option
        for option in named
        if all(option in varied for owners, varied in owned if option.partition(".")[0] in owners)
    )


def _distinct(suites: Sequence[ModuleType], field: str, default: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(name for suite in suites for name in getattr(suite, field, default)))
