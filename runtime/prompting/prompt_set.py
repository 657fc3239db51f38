"""A set of prompts: the default ones, with those that a user's folder or a paper's set replaces."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hopscope.runtime.prompting import template_files
from hopscope.runtime.prompting.template_files import DEFAULT, DEMONSTRATIONS, SUFFIX, TemplateFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hopscope.runtime.prompting.templates import Templates
    from hopscope.runtime.types import Passage, Prompt


@dataclass(frozen=True, eq=False)
class PromptSet:
    """The prompts of a run. Files are read, and templates compiled, when first needed."""

    name: str = DEFAULT
    """As in records: `default`, or the set's name or folder with the hash of its files."""
    replaced: Mapping[str, TemplateFile] = field(default_factory=dict)
    """The files that differ from the default."""

    def render(self, name: str, passages: "Sequence[Passage]" = (), /, **values: Any) -> "Prompt":
        """The prompt `name`, such as `ircot/reason`, which shows `passages`.

            generate(deps, evidence, partial(deps.prompts.render, "naive/answer", question=text))

        Raises:
            UsageError: the template fails; the message names the file and the line.
        """
        demonstrations = self.demonstrations.get(name.partition("/")[0], ())
        given = {"demonstrations": demonstrations, **values}
        return self.templates.render(f"{name}{SUFFIX}", passages, given)

    @property
    def option(self) -> str:
        """The set as the option `prompts` of a meter or a workflow; empty for the default set."""
        return self.name if self.replaced else ""

    @property
    def hash(self) -> str:
        """The hash of the files that differ; empty for the default set."""
        return self.name.rpartition("#")[2] if self.replaced else ""

    @cached_property
    def files(self) -> dict[str, TemplateFile]:
        """All files of the set by their paths in it."""
        return {**template_files.shipped(DEFAULT), **self.replaced}

    @cached_property
    def templates(self) -> "Templates":
        from hopscope.runtime.prompting.templates import Templates  # imports Jinja2

        return Templates(self.files)

    @cached_property
    def demonstrations(self) -> dict[str, tuple[Mapping[str, Any], ...]]:
        """The demonstrations for the prompts of each folder that has some."""
        return {
            path.partition("/")[0]: template_files.demonstrations(file)
            for path, file in self.files.items()
            if path.endswith(f"/{DEMONSTRATIONS}")
        }

    def differs(self, name: str) -> bool:
        """Whether the set sends another prompt `name` than the default does."""
        demonstrated = f"{name.partition('/')[0]}/{DEMONSTRATIONS}"
        parts = self.templates.parts(f"{name}{SUFFIX}") if self.replaced else []
        return any(path in self.replaced for path in (*parts, demonstrated))


DEFAULT_PROMPTS = PromptSet()
