"""Loads a set of prompts by its name or its folder, and keeps the sets that runs share."""

from functools import lru_cache

from hopscope.runtime.errors import UsageError
from hopscope.runtime.places import expanded
from hopscope.runtime.prompting import template_files
from hopscope.runtime.prompting.prompt_checks import check
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS, PromptSet
from hopscope.runtime.prompting.template_files import DEFAULT, TemplateFile


def load(text: str) -> PromptSet:
    """The set of this name, or in this folder, checked.

    Args:
        text: as given, or as recorded with a hash: `FOLDER#HASH`.

    Raises:
        UsageError: there is no such set, its files are not those that were recorded, or one of
            them cannot be used; the message names the file and the line.
    """
    return _recorded(text) if _is_recorded(text) else _load(text)


def chosen(option: str) -> PromptSet:
    """The set that an option `prompts` names, of which empty is the default one.

    Raises:
        UsageError: as `load`.
    """
    return load(option) if option else DEFAULT_PROMPTS


@lru_cache(maxsize=8)  # files with a hash do not change; meters load them for each evidence
def _recorded(text: str) -> PromptSet:
    return _load(text)


def _load(text: str) -> PromptSet:
    place, _, recorded = text.rpartition("#") if _is_recorded(text) else (text, "", "")
    if place == DEFAULT:
        return DEFAULT_PROMPTS
    if place in template_files.names():
        name, found = place, template_files.shipped(place)
    else:
        folder = expanded(place).absolute()
        name, found = str(folder), template_files.of_folder(folder)
    default = DEFAULT_PROMPTS.files
    found = {path: file for path, file in found.items() if not _same(file, default.get(path))}
    hash = template_files.set_hash(found)
    if recorded and hash != recorded:
        raise UsageError(
            f"the prompts of {place} are not those that were recorded: they have the hash {hash}, "
            f"those {recorded}; restore them, or begin anew"
        )
    return _checked(f"{name}#{hash}", tuple(found.items())) if found else DEFAULT_PROMPTS


def _same(file: TemplateFile, default: TemplateFile | None) -> bool:
    return default is not None and file.text == default.text


@lru_cache(maxsize=8)  # a set is loaded for each workflow and meter
def _checked(name: str, found: tuple[tuple[str, TemplateFile], ...]) -> PromptSet:
    loaded = PromptSet(name, dict(found))
    check(loaded)
    return loaded


def _is_recorded(text: str) -> bool:
    hash = text.rpartition("#")[2]
    digits = len(hash) == template_files.DIGITS
    return "#" in text and digits and all(letter in "0123456789abcdef" for letter in hash)
