"""Records all runs of a framework in this process, until closed."""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TypedDict, Unpack

from hopscope.api.recording.background import Measure
from hopscope.api.recording.frameworks.calls import Calls
from hopscope.store.store import Store as RecordStore


class Recorded(TypedDict, total=False):
    """How runs are recorded, as `HopscopeHandler` takes it."""

    tools: Iterable[str]
    workflow: str
    """By default the framework's name."""
    experiment: str | None
    measure: str | Measure | None


def record_llama_index(
    store: "str | Path | RecordStore | None" = None, **how: Unpack[Recorded]
) -> Calls:
    """Record what LlamaIndex's engines and agents do from now on, as `HopscopeHandler` does of
    LangChain; `close()` or a with statement ends it.

        with hopscope.record_llama_index("runs.db") as recorded:
            engine.query("Who founded it?")
        print(recorded.stored)

    The arguments are those of `HopscopeHandler`: `tools`, `workflow`, `experiment` and `measure`.

    Raises:
        UsageError, StoreError: as `HopscopeHandler`.
        MissingExtraError: LlamaIndex is not installed.
    """
    return _listening("llama_index", store, how)


def record_haystack(
    store: "str | Path | RecordStore | None" = None, **how: Unpack[Recorded]
) -> Calls:
    """Record what Haystack's pipelines and agents do from now on, in place of another tracer;
    `close()` or a with statement ends it. Arguments and errors as of `record_llama_index`."""
    return _listening("haystack", store, how)


def record_dspy(store: "str | Path | RecordStore | None" = None, **how: Unpack[Recorded]) -> Calls:
    """Record what DSPy's programs do from now on; `close()` or a with statement ends it. Call it in
    the thread that configures DSPy. Arguments and errors as of `record_llama_index`."""
    return _listening("dspy", store, how)


def _listening(framework: str, store: "str | Path | RecordStore | None", how: Recorded) -> Calls:
    module = import_module(f"{__package__}.{framework}")
    recorded: Calls = module.Recorded(store, **{"workflow": framework, **how})
    recorded.begin_listening()
    return recorded
