"""Turns what a user names on the command line into live objects."""

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hopscope.cli import render
from hopscope.runtime.errors import UsageError

if TYPE_CHECKING:
    from hopscope.runtime.ports import Entailment, Reader, Retriever
    from hopscope.runtime.run import Workflow
    from hopscope.store.store import Store

Kept = TypeVar("Kept")

HOPLAND = "hopland"
TINY = "tiny"
NO_MODEL_FOR_REAL_TEXT = (
    "the embedded reader knows only the made-up world of Hopland and is no model for real text: "
    "expect nonsense, or give --reader hf:FOLDER"
)


def parse_pairs(options: Iterable[str]) -> dict[str, str]:
    """`key=value` texts as a dictionary.

    Raises:
        UsageError: a text without "=", or a key given twice.
    """
    pairs: dict[str, str] = {}
    for option in options:
        key, found, value = option.partition("=")
        if not found or not key:
            raise UsageError(f"option {option!r} is not of the form key=value")
        if key in pairs:
            raise UsageError(f"option {key!r} is given twice")
        pairs[key] = value
    return pairs


def lines(variable: str) -> list[str]:
    """The lines of an environment variable that holds several values."""
    return [line for line in os.environ.get(variable, "").splitlines() if line.strip()]


def workflow(name: str, options: dict[str, str]) -> "Workflow":
    """Build a workflow by name, its options read from text."""
    from hopscope import workflows
    from hopscope.runtime import components
    from hopscope.runtime.run import Workflow

    module = components.load(workflows, name)
    resolved = components.parse_options(module.build, options)
    return Workflow(name=name, graph=module.build(**resolved), options=resolved)


def rebuilt(name: str, options: Mapping[str, Any]) -> "Workflow":
    """Build a workflow with all its options, as JSON kept them.

    Raises:
        UsageError: this version's workflow has other options.
    """
    from typing import get_type_hints

    from pydantic import TypeAdapter, ValidationError

    from hopscope import workflows
    from hopscope.runtime import components
    from hopscope.runtime.run import Workflow

    build = components.load(workflows, name).build
    hints = get_type_hints(build, include_extras=True)
    try:
        resolved = {key: TypeAdapter(hints[key]).validate_python(v) for key, v in options.items()}
    except (KeyError, ValidationError):
        raise UsageError(f"{name} no longer takes the options {dict(options)}") from None
    return Workflow(name=name, graph=build(**resolved), options=resolved)


def takes(name: str, option: str) -> bool:
    """Whether a workflow has an option of that name."""
    from hopscope import workflows
    from hopscope.runtime import components

    return option in components.options(components.load(workflows, name).build)


def thoughtful(spec: str, thinking: str | None) -> str:
    """A reader's name with what `--thinking` says as one of its options; what stands in the name
    already holds.

    Raises:
        UsageError: that is neither on, off, auto nor a number of tokens, or the reader is none that
            thinks.
    """
    if thinking is None or ",thinking=" in spec:
        return spec
    from hopscope.runtime import components, readers

    value = thinking.strip().lower()
    if value not in ("auto", "on", "off") and not (
        value.isascii() and value.isdigit() and int(value)
    ):
        raise UsageError(f"--thinking {thinking}: give on, off, auto, or a number of tokens")
    kind = re.split("[:,]", spec)[0]
    if "thinking" in components.options(components.load(readers, kind).build):
        return f"{spec},thinking={value}"
    if value in ("auto", "off"):
        return spec
    raise UsageError(f"--thinking {thinking}: the reader {kind} does not think; name another")


def reader_or_own(named: str | None, own: str, thinking: str | None) -> str:
    """The name of a reader that is given, or else an experiment's own, of which `--thinking` takes
    the place of what it was made with.

    Raises:
        UsageError: as `thoughtful`.
    """
    if named is None and thinking is not None:
        own = re.sub(",thinking=[^,]*", "", own)
    return thoughtful(named or own, thinking)


def reader(spec: str) -> "Reader":
    """`tiny`, the embedded reader, `hf:ID_OR_FOLDER`, any causal language model,
    `vllm:ID_OR_FOLDER`, the same by vLLM, or `openai:URL#MODEL`, a model on a server; options
    follow after commas, as in `hf:FOLDER,dtype=bfloat16`. `cache=DATABASE` is one for all readers.

    Raises:
        UsageError: there is no such reader or option, or the model cannot be loaded.
        ReaderError: the server cannot be reached.
    """
    from hopscope.runtime import components, readers

    named, *given = re.split(r",(?=[a-z_]+=)", spec)
    kind, _, model = named.partition(":")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    _note_warnings()
    build = components.load(readers, kind).build
    options = parse_pairs(given) | _named(build, "model", model, f"--reader {named}")
    cache = options.pop("cache", None)
    built: Reader = build(**components.parse_options(build, options))
    _tell_thinking(built)
    if cache is None:
        return built
    from hopscope.runtime.readers._cached import KeptReader

    return _kept(cache, lambda store: KeptReader(built, store.answers))


def _tell_thinking(built: "Reader") -> None:
    """Remark on a reader that thinks, which costs, and on one whose thoughts cannot be turned off
    as usual."""
    habit = getattr(built, "habit", None)
    if habit is None:
        return
    if habit.thinks:
        render.note(
            f"{built.name} thinks before each answer, and so before each sample of a belief, for "
            f"up to {habit.limit:,} tokens; --thinking off or TOKENS spares some of that"
        )
    elif habit.note:
        render.note(f"{built.name}: {habit.note}")


def _note_warnings() -> None:
    """Print what our modules warn of as the commands print their notes."""
    log = logging.getLogger("hopscope")
    if not any(isinstance(handler, _Notes) for handler in log.handlers):
        log.addHandler(_Notes(logging.WARNING))


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        render.note(render.plain(record.getMessage()))


def _kept(location: str, keep: "Callable[[Store], Kept]") -> "Kept":
    """What keeps answers in a database, which is closed with it."""
    import weakref

    from hopscope.store.store import Store

    store = Store.open(location)
    kept = keep(store)
    weakref.finalize(kept, store.close)
    return kept


def entailment(spec: str) -> "Entailment":
    """`lexical`, for short answers, `equivalence`, the embedded model for general text,
    `nli:ID_OR_FOLDER`, any MNLI classifier, `bem:ID_OR_FOLDER`, any classifier of answer
    equivalence, or `judge:READER`, any reader, named as by `reader`. Options follow after commas,
    as in `nli:FOLDER,device=cuda`; `cache=DATABASE` is one for all, and those of a judge are its
    reader's.

    Raises:
        UsageError: there is no such entailment or option, or the model cannot be loaded.
    """
    from hopscope.runtime import components
    from hopscope.tracing import entailments

    flag = f"--entailment {spec}"
    named, *given = re.split(r",(?=[a-z_]+=)", spec)
    kind, _, model = named.partition(":")
    build = components.load(entailments, kind).build
    asked = spec.partition(":")[2]
    if "reader" in components.options(build):
        judge: Entailment = build(reader=reader(_named(build, "reader", asked, flag)["reader"]))
        return judge
    options = parse_pairs(given) | _named(build, "model", model, flag)
    cache = options.pop("cache", None)
    built: Entailment = build(**components.parse_options(build, options))
    if cache is None:
        return built
    from hopscope.tracing.entailments._kept import KeptEntailment

    return _kept(cache, lambda store: KeptEntailment(built, store.entailments))


def _named(build: Any, option: str, value: str, flag: str) -> dict[str, str]:
    from hopscope.runtime import components

    wanted = option in components.options(build)
    if wanted and not value:
        raise UsageError(f"{flag}: name a model, as in {flag.split(':')[0]}:ID_OR_FOLDER")
    if value and not wanted:
        raise UsageError(f"{flag}: takes nothing after the name")
    return {option: value} if wanted else {}


def corpus(spec: str) -> "Retriever":
    """`hopland`, the embedded world, or the folder of an index, opened by what built it.

    Raises:
        UsageError: there is no such folder.
        IndexMismatch: it is damaged, or of a kind unknown here.
    """
    if spec == HOPLAND:
        from hopscope.lab.hopland import data
        from hopscope.runtime.retrievers import bm25

        return bm25.from_passages(data.corpus(), name=HOPLAND)
    folder = Path(spec)
    if not (folder / "manifest.json").is_file():
        raise UsageError(
            f"no index at {spec}: give {HOPLAND}, or the folder of an index made with "
            f"`hopscope index build CORPUS.jsonl --out {spec}`"
        )
    from hopscope.runtime import components, index_folder, retrievers
    from hopscope.runtime.errors import IndexMismatch

    kind = index_folder.read_manifest(folder).kind
    if kind not in components.names(retrievers):
        raise IndexMismatch(
            f"{spec} is an index of kind {kind!r}; this version reads "
            f"{', '.join(components.names(retrievers))}"
        )
    opened: Retriever = components.load(retrievers, kind).build(index=folder)
    return opened
