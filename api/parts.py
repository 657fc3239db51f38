"""Builds the parts of a run from their names."""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hopscope.runtime.errors import UsageError
from hopscope.runtime.specs import Spec
from hopscope.runtime.texts.literals import whole_number

if TYPE_CHECKING:
    from hopscope.runtime.execution.run import Workflow
    from hopscope.runtime.ports import Entailment, Reader, Retriever
    from hopscope.store.store import Store

Kept = TypeVar("Kept")

_log = logging.getLogger(__name__)

HOPLAND = "hopland"
TINY = "tiny"
PROMPTS = "prompts"
"""The option of every workflow that names a set of prompts, or its folder."""
NATIVE = "native"
"""The policy that leaves each decision to the workflow."""
NO_MODEL_FOR_REAL_TEXT = (
    "the embedded reader knows only the fictional world of Hopland and is no model for real text: "
    "expect nonsense, or name another reader, such as hf:FOLDER"
)


def lines(variable: str) -> list[str]:
    """The lines of an environment variable that holds several values."""
    return [line for line in os.environ.get(variable, "").splitlines() if line.strip()]


def workflow(name: str, options: dict[str, str]) -> "Workflow":
    """Build a workflow by name, with options given as text."""
    return _built(name, workflow_options(name, options))


def _built(name: str, resolved: dict[str, Any]) -> "Workflow":
    from hopscope import workflows
    from hopscope.runtime import code_files, components
    from hopscope.runtime.execution.run import Workflow

    module = components.load(workflows, name)
    own = {key: value for key, value in resolved.items() if not _is_common(module.build, key)}
    built = Workflow(code_files.shown(name), graph=module.build(**own), options=own)
    return prompted(built, resolved[PROMPTS]) if own.keys() != resolved.keys() else built


def _is_common(build: "Callable[..., Any]", option: str) -> bool:
    """Whether an option is the one of all workflows, and not the workflow's own of that name."""
    from hopscope.runtime import components

    return option == PROMPTS and option not in components.options(build)


def prompted(built: "Workflow", prompts: str) -> "Workflow":
    """The workflow with a set of prompts, which its options name.

    Raises:
        UsageError: there is no such set, one of its files cannot be used, or the workflow is a
            graph that does not ask the run's reader.
    """
    from hopscope.runtime.execution.run import Watched
    from hopscope.runtime.prompting import loading
    from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS

    if isinstance(built.graph, Watched) and not built.graph.ports:
        raise UsageError(f"{built.name} has prompts of its own: leave out {PROMPTS}={prompts}")
    loaded = loading.load(prompts)
    if loaded is DEFAULT_PROMPTS:
        return built
    return replace(built, prompts=loaded, options={**built.options, PROMPTS: loaded.name})


def workflow_options(name: str, options: Mapping[str, str]) -> dict[str, Any]:
    """All options of a workflow, of texts. Every workflow takes `prompts`, a set or its folder,
    which is kept with the hash of its files; the default set is not kept.

    Raises:
        UsageError: there is no such workflow or option, or a prompt cannot be used.
    """
    from hopscope import workflows
    from hopscope.runtime import components
    from hopscope.runtime.prompting import loading
    from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS

    build = components.load(workflows, name).build
    own = {key: text for key, text in options.items() if not _is_common(build, key)}
    resolved = components.parse_options(build, own)
    if own.keys() != options.keys():
        prompts = loading.load(options[PROMPTS])
        if prompts is not DEFAULT_PROMPTS:
            resolved[PROMPTS] = prompts.name
    return resolved


def rebuilt(name: str, options: Mapping[str, Any]) -> "Workflow":
    """Build a workflow with all its options as stored in JSON.

    Raises:
        UsageError: this version's workflow has other options.
    """
    from typing import get_type_hints

    from pydantic import TypeAdapter, ValidationError

    from hopscope import workflows
    from hopscope.runtime import components

    build = components.load(workflows, name).build
    hints = {PROMPTS: str, **get_type_hints(build, include_extras=True)}
    try:
        resolved = {key: TypeAdapter(hints[key]).validate_python(v) for key, v in options.items()}
    except (KeyError, ValidationError):
        raise UsageError(f"{name} no longer takes the options {dict(options)}") from None
    return _built(name, resolved)


def takes(name: str, option: str) -> bool:
    """Whether a workflow has an option of that name."""
    from hopscope import workflows
    from hopscope.runtime import components

    return option == PROMPTS or option in components.options(components.load(workflows, name).build)


def thoughtful(reader: str, thinking: str | None) -> str:
    """The text of a reader with the value of `--thinking` among its options; an option that the
    text has already holds.

    Raises:
        UsageError: the value is neither on, off, auto nor a number of tokens, or the reader does
            not think.
    """
    if thinking is None:
        return reader
    from hopscope.runtime import components, readers

    spec = Spec.parse(reader)
    if "thinking" in dict(spec.options):
        return reader

    value = thinking.strip().lower()
    if value not in ("auto", "on", "off") and (whole_number(value) or 0) < 1:
        raise UsageError(f"thinking {thinking}: give on, off, auto, or a number of tokens")
    if "thinking" in components.options(components.load(readers, spec.name).build):
        return str(replace(spec, options=(*spec.options, ("thinking", value))))
    if value in ("auto", "off"):
        return reader
    raise UsageError(
        f"thinking {thinking}: the reader {spec.name} does not think; leave it out or name another "
        "reader"
    )


def reader_or_own(named: str | None, own: str, thinking: str | None) -> str:
    """The text of the reader that is named, or else of an experiment's own, in which the value of
    `--thinking` replaces the one that the experiment has.

    Raises:
        UsageError: as `thoughtful`.
    """
    if named is None and thinking is not None:
        spec = Spec.parse(own)
        kept = tuple(option for option in spec.options if option[0] != "thinking")
        own = str(replace(spec, options=kept))
    return thoughtful(named or own, thinking)


def prompts_of(reader: object) -> str | None:
    """The set of prompts that a named reader brings along; None of one that reads the default.

    Raises:
        UsageError: there is no such reader.
    """
    if not isinstance(reader, str):
        return None
    from hopscope.runtime import components, readers
    from hopscope.runtime.prompting import loading

    own: str | None = getattr(components.load(readers, Spec.parse(reader).name), "PROMPTS", None)
    return own and loading.load(own).name


def embedded(reader: object) -> bool:
    """Whether a reader's text names one of the embedded ones."""
    return isinstance(reader, str) and Spec.parse(reader).name == TINY


def reader(named: Spec | str) -> "Reader":
    """`tiny`, the embedded reader, `tiny:search`, the embedded one that searches by itself,
    `hf:ID_OR_FOLDER`, any causal language model, `vllm:ID_OR_FOLDER`, the same by vLLM, or
    `openai:URL#MODEL`, a model on a server; options follow after commas, as in
    `hf:FOLDER,dtype=bfloat16`. `cache=DATABASE` is one for all readers.

    Raises:
        UsageError: there is no such reader or option, or the model cannot be loaded.
        ReaderError: the server cannot be reached.
    """
    from hopscope.runtime import components, readers

    spec, cache = _uncached(Spec.of(named))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    built: Reader = components.named(readers, spec, argument="model")()
    _tell_thinking(built)
    if cache is None:
        return built
    from hopscope.runtime.wrappers.kept_reader import KeptReader

    return _kept(cache, lambda store: KeptReader(built, store.answers))


def _tell_thinking(built: "Reader") -> None:
    """Warn about a reader that thinks, which costs tokens, and about one whose thinking cannot be
    turned off as usual."""
    habit = getattr(built, "habit", None)
    if habit is None:
        return
    if habit.thinks:
        _log.warning(
            f"{built.name} thinks before each answer, and so before each sample of a belief, for "
            f"up to {habit.limit:,} tokens; thinking='off' (--thinking off) or fewer tokens help"
        )
    elif habit.note:
        _log.warning(f"{built.name}: {habit.note}")


def _kept(location: str, keep: "Callable[[Store], Kept]") -> "Kept":
    """A wrapper that stores answers in a database, and closes the database with itself."""
    import weakref

    from hopscope.store.store import Store

    store = Store.open(location)
    kept = keep(store)
    weakref.finalize(kept, store.close)
    return kept


def _uncached(spec: Spec) -> tuple[Spec, str | None]:
    """The spec without the common option `cache=DATABASE`, and the value of that option."""
    kept = tuple(option for option in spec.options if option[0] != "cache")
    return replace(spec, options=kept), dict(spec.options).get("cache")


def entailment(named: Spec | str) -> "Entailment":
    """`lexical`, for short answers, `equivalence`, the embedded model for general text,
    `nli:ID_OR_FOLDER`, any MNLI classifier, `bem:ID_OR_FOLDER`, any classifier of answer
    equivalence, or `judge:READER`, any reader, named as by `reader`. Options follow after commas,
    as in `nli:FOLDER,device=cuda`; `cache=DATABASE` is one for all, and those of a judge are its
    reader's but for `prompts=SET`.

    Raises:
        UsageError: there is no such entailment or option, or the model cannot be loaded.
    """
    from hopscope.runtime import components
    from hopscope.tracing import entailments

    spec = Spec.of(named)
    build = components.load(entailments, spec.name).build
    if "reader" in (known := components.options(build)):
        if not spec.argument:
            raise UsageError(f"{spec} needs reader: give {spec.name}:READER")
        own = {key: text for key, text in spec.options if key == PROMPTS and key in known}
        rest = tuple(option for option in spec.options if option[0] not in own)
        judge: Entailment = build(reader=reader(replace(spec, options=rest).inner), **own)
        return judge
    spec, cache = _uncached(spec)
    built: Entailment = components.named(entailments, spec, argument="model")()
    if cache is None:
        return built
    from hopscope.tracing.pairs.kept_entailment import KeptEntailment

    return _kept(cache, lambda store: KeptEntailment(built, store.entailments))


def judging(entailment: str, prompts: str | None, *, anew: bool = False) -> str:
    """The text of an entailment that asks in a set of prompts, where it is a judge, and the set has
    another prompt for it than the default; the prompts that the text has already hold.

    Args:
        anew: these prompts replace those of the text.

    Raises:
        UsageError: there is no such entailment, or the prompts cannot be used.
    """
    if not prompts:
        return entailment
    from hopscope.runtime import components
    from hopscope.runtime.prompting import loading
    from hopscope.tracing import entailments

    spec = Spec.parse(entailment)
    module = components.load(entailments, spec.name)
    if not {"reader", PROMPTS} <= components.options(module.build).keys():
        return entailment
    if anew:
        kept = tuple(option for option in spec.options if option[0] != PROMPTS)
        spec = replace(spec, options=kept)
    loaded = loading.load(prompts)
    if PROMPTS not in dict(spec.options) and loaded.differs(module.PROMPT):
        spec = replace(spec, options=(*spec.options, (PROMPTS, loaded.name)))
    return str(spec)


def corpus(spec: str) -> "Retriever":
    """Open `hopland`, the embedded world, or the folder of an index.

    Raises:
        UsageError: there is no such folder.
        IndexMismatchError: the index is damaged, or of a kind unknown here.
    """
    if spec == HOPLAND:
        from hopscope.runtime.corpora import hopland
        from hopscope.runtime.retrievers import bm25

        return bm25.from_passages(hopland.corpus(), name=HOPLAND)
    folder = Path(spec)
    if not (folder / "manifest.json").is_file():
        raise UsageError(
            f"no index at {spec}: give {HOPLAND}, or the folder of an index made with "
            f"`hopscope index build CORPUS.jsonl --out {spec}`"
        )
    from hopscope.runtime import components, retrievers
    from hopscope.runtime.errors import IndexMismatchError
    from hopscope.runtime.indexes import index_folder

    kind = index_folder.read_manifest(folder).kind
    if kind not in components.names(retrievers):
        raise IndexMismatchError(
            f"{spec} is an index of kind {kind!r}; this version reads "
            f"{', '.join(components.names(retrievers))}"
        )
    opened: Retriever = components.load(retrievers, kind).build(index=folder)
    return opened
