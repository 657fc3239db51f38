"""Finds the mistakes in a user's prompts before the first question.

Every prompt of the set is rendered with samples of all that workflows give it. Text in the samples
is digits and marks, so that all words of a rendering are the prompt's own.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from hopscope.runtime.choices import did_you_mean
from hopscope.runtime.errors import UsageError
from hopscope.runtime.prompting import tool_calls
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.prompting.template_files import OWN, SUFFIX
from hopscope.runtime.types import Passage, Prompt

if TYPE_CHECKING:
    from hopscope.runtime.prompting.prompt_set import PromptSet

_ONE, _OTHER = Passage(id="1", title="1", text="1."), Passage(id="2", text="2.")
_CALLS: Final = '{"text": "", "calls": [{"name": "search", "arguments": {"query": "1"}}]}'
_STATES: Final = ("found", "declined", "wrong")
SAMPLES: Final[Mapping[str, tuple[Any, ...]]] = {
    "answer": ("1",),
    "closing": (False, True),
    "criterion": ("relevance", "utility"),
    "dialogue": ("Are follow up questions needed here:",),
    "first": (None, "explicit", "implicit"),
    "form": ("explicit", "implicit"),
    "other": ("2",),
    "passage": (_ONE, _OTHER),
    "passages": ((_ONE, _OTHER), ()),
    "question": ("1?",),
    "reference": ("", "1"),
    "searching": (True, False),
    "span": ("1",),
    "thoughts": ((), ("1.", "2.")),
    "transcript": ("",),
    "turns": (
        (),
        tuple(
            {"calls": _CALLS, "results": [{"state": state, "passages": shown}]}
            for state in _STATES
            for shown in ((_ONE, _OTHER), ())
        ),
    ),
    "words": (200,),
    "written": ("", "1."),
}
"""Samples of each value that a workflow gives to a prompt."""


def check(prompts: "PromptSet") -> None:
    """
    Raises:
        UsageError: a file of the set cannot be used; the message names the file and the line.
    """
    default = DEFAULT_PROMPTS.templates
    _ = prompts.demonstrations  # reads all of them
    for path in prompts.replaced:
        if not path.endswith(SUFFIX):
            continue
        prompts.templates.parts(path)
        if path.startswith(f"{OWN}/"):
            continue
        known = values(path.removesuffix(SUFFIX)) | default.variables(path).keys()
        for variable, line in prompts.templates.variables(path).items():
            if variable not in known:
                meant = did_you_mean(variable, known)
                raise UsageError(
                    f"{prompts.files[path].path}, line {line}: {variable!r} is no value of this "
                    f"prompt, which has {', '.join(sorted(known))}{meant}"
                )
    for name in filter(prompts.differs, names()):
        for made in renderings(prompts, name):
            if any(message.role == "tools" for message in made.messages):
                _check_tools(prompts, name, made)


def _check_tools(prompts: "PromptSet", name: str, made: Prompt) -> None:
    path = prompts.files[f"{name}{SUFFIX}"].path
    try:
        offered = [tool["function"]["name"] for tool in tool_calls.tools(made.messages)]
    except (ValueError, TypeError, KeyError, RecursionError):
        problem = "the tools are no JSON list of functions in OpenAI's form"
        raise UsageError(f"{path}: {problem}") from None
    if "search" not in offered:
        raise UsageError(f"{path}: the tool search is missing, which the workflow carries out")


def values(name: str) -> set[str]:
    """What a prompt is given, of which its parts may use all."""
    default = DEFAULT_PROMPTS.templates
    wanted = {each for part in default.parts(f"{name}{SUFFIX}") for each in default.variables(part)}
    return {"demonstrations", "passages"} | (wanted & SAMPLES.keys())


def names() -> list[str]:
    """The prompts that workflows, meters and stages ask for; the other files are parts of them."""
    default = DEFAULT_PROMPTS
    paths = [path for path in default.files if path.endswith(SUFFIX)]
    parts = {part for path in paths for part in default.templates.parts(path)[1:]}
    return [path.removesuffix(SUFFIX) for path in paths if path not in parts]


def renderings(prompts: "PromptSet", name: str) -> Iterator[Prompt]:
    """A prompt with every combination of the samples.

    Raises:
        UsageError: a template fails; the message names the file and the line.
    """
    varied = sorted(values(name) - {"demonstrations"})
    for chosen in product(*(SAMPLES[variable] for variable in varied)):
        given = dict(zip(varied, chosen, strict=True))
        yield prompts.render(name, given.pop("passages"), **given)
