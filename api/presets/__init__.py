"""Named sets of options, as data: `NAME.toml` in this folder is the preset `NAME`.

A file says what the preset is and where its values come from, and lists options of meters and of
workflows:

    about = "..."
    source = "..."
    [meters.seper]
    context_words = 512
    [workflows.flare]
    query = "question"
    prompts = "flare-authors"

A preset sets options only of the meters and workflows that a command uses. The user's own options
precede it, and of several presets the later precedes the earlier. A result is recorded with the
options, not with the preset's name.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Self

from pydantic import Field, JsonValue, ValidationError

from hopscope.runtime.choices import did_you_mean
from hopscope.runtime.errors import UsageError
from hopscope.runtime.prompting import loading
from hopscope.runtime.types import Record
from hopscope.runtime.validation import first
from hopscope.tracing.meters import PROMPT as METER_PROMPT
from hopscope.tracing.meters import VARIANTS

SUFFIX = ".toml"


class Preset(Record):
    """A named set of options."""

    name: str
    about: str
    """What it is, in a sentence."""
    source: str
    """Where its values come from."""
    meters: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    """Options by meter."""
    workflows: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    """Options by workflow."""

    @property
    def options(self) -> dict[str, JsonValue]:
        """All its options by `METER.KEY` or `WORKFLOW.KEY`."""
        parts = [*self.meters.items(), *self.workflows.items()]
        return {f"{name}.{key}": value for name, own in parts for key, value in own.items()}


def names() -> list[str]:
    """The presets there are."""
    there = (file.name for file in files(__name__).iterdir())
    return sorted(name.removesuffix(SUFFIX) for name in there if name.endswith(SUFFIX))


def load(name: str) -> Preset:
    """
    Raises:
        UsageError: there is no such preset, or its file is not of the form above.
    """
    if name not in names():
        meant = did_you_mean(name, names())
        raise UsageError(f"unknown preset {name!r}: choose from {', '.join(names())}{meant}")
    text = files(__name__).joinpath(f"{name}{SUFFIX}").read_text(encoding="utf-8")
    try:
        return Preset.model_validate({"name": name, **tomllib.loads(text)})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"preset {name}: {error}") from error
    except ValidationError as error:
        raise UsageError(f"preset {name}: {first(error, whole=name)}") from error


@dataclass(frozen=True)
class Presets:
    """The presets of a command or a session."""

    chosen: tuple[Preset, ...] = ()
    prompts: str | None = None
    """A set of prompts, or its folder, for all workflows and meters. It precedes those of presets,
    and the option `prompts` of a workflow or a meter precedes it."""
    own: tuple[Preset, ...] = ()
    """The user's own options in this form, which precede the prompts."""

    @classmethod
    def named(cls, chosen: Iterable[str], prompts: str | None = None) -> Self:
        """
        Raises:
            UsageError: there is no such preset, or the prompts cannot be used.
        """
        pinned = prompts and loading.load(prompts).name
        return cls(tuple(load(name) for name in dict.fromkeys(chosen)), pinned)

    def of_meters(self, meters: Sequence[str]) -> dict[str, str]:
        """Options of these meters: `METER.KEY` to text. Options of a meter hold for its variants,
        such as `seper_hard`."""
        homes = dict.fromkeys(VARIANTS.get(name, (name, {}))[0] for name in meters)
        used = [*homes, *(name for name in meters if name not in homes)]

        def of(presets: Iterable[Preset]) -> dict[str, str]:
            return {
                f"{name}.{key}": text
                for preset in presets
                for name in used
                for key, text in _texts(preset.meters.get(name, {})).items()
            }

        found = of(self.chosen)
        if self.prompts:
            asking = [f"{home}.prompts" for home in homes if _takes(home)]
            found = {key: text for key, text in found.items() if key not in asking}
            if loading.load(self.prompts).differs(METER_PROMPT):
                found |= dict.fromkeys(asking, self.prompts)
        return found | of(self.own)

    def of_workflow(self, workflow: str) -> dict[str, str]:
        """Options of this workflow, as texts."""
        found: dict[str, str] = {}
        for preset in self.chosen:
            found |= _texts(preset.workflows.get(workflow, {}))
        if self.prompts:
            found["prompts"] = self.prompts
        for preset in self.own:
            found |= _texts(preset.workflows.get(workflow, {}))
        return found

    def check(self, *, meters: Sequence[str], workflows: Sequence[str]) -> None:
        """Check that each preset sets something.

        Raises:
            UsageError: one has options only of other meters and workflows.
        """
        for preset in self.chosen:
            alone = Presets((preset,))
            if not alone.of_meters(meters) and not any(map(alone.of_workflow, workflows)):
                used = ", ".join([*meters, *workflows]) or "none"
                owners = ", ".join([*preset.meters, *preset.workflows])
                raise UsageError(
                    f"preset {preset.name} sets options of {owners}; the meters and workflows "
                    f"here are {used}: choose one of the former, or leave the preset out"
                )


def _texts(options: Mapping[str, JsonValue]) -> dict[str, str]:
    """Options as on the command line."""
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in options.items()}


def _takes(meter: str) -> bool:
    """Whether a meter takes prompts."""
    from hopscope.runtime import components
    from hopscope.tracing import meters

    return "prompts" in components.options(components.load(meters, meter).build)


def rows() -> list[dict[str, JsonValue]]:
    """The presets as rows of a list."""
    return [
        {
            "name": found.name,
            "from": "",
            "summary": found.about,
            "paper": found.source,
            "options": found.options,
        }
        for found in map(load, names())
    ]
