"""Records all runs of a framework in this process, until closed."""

from collections.abc import Iterable
from pathlib import Path

from hopscope.api.recording.background import Measure
from hopscope.api.recording.frameworks.calls import Calls
from hopscope.store.store import Store as RecordStore


def record_llama_index(
    store: "str | Path | RecordStore | None" = None,
    *,
    tools: Iterable[str] = (),
    workflow: str = "llama_index",
    experiment: str | None = None,
    measure: str | Measure | None = None,
) -> Calls:
    """Record what LlamaIndex's engines and agents do from now on, as `HopscopeHandler` does of
    LangChain; `close()` or a with statement ends it.

        with hopscope.record_llama_index("runs.db") as recorded:
            engine.query("Who founded it?")
        print(recorded.stored)

    The arguments are those of `HopscopeHandler`.

    Raises:
        UsageError, StoreError: as `HopscopeHandler`.
        MissingExtraError: LlamaIndex is not installed.
    """
    from hopscope.api.recording.frameworks.llama_index import Recorded

    recorded = Recorded(
        store, tools=tools, workflow=workflow, experiment=experiment, measure=measure
    )
    recorded.begin_listening()
    return recorded


def record_haystack(
    store: "str | Path | RecordStore | None" = None,
    *,
    tools: Iterable[str] = (),
    workflow: str = "haystack",
    experiment: str | None = None,
    measure: str | Measure | None = None,
) -> Calls:
    """Record what Haystack's pipelines and agents do from now on, in place of another tracer;
    `close()` or a with statement ends it. As `record_llama_index`.

    Raises:
        UsageError, StoreError: as `HopscopeHandler`.
        MissingExtraError: Haystack is not installed.
    """
    from hopscope.api.recording.frameworks.haystack import Recorded

    recorded = Recorded(
        store, tools=tools, workflow=workflow, experiment=experiment, measure=measure
    )
    recorded.begin_listening()
    return recorded


def record_dspy(
    store: "str | Path | RecordStore | None" = None,
    *,
    tools: Iterable[str] = (),
    workflow: str = "dspy",
    experiment: str | None = None,
    measure: str | Measure | None = None,
) -> Calls:
    """Record what DSPy's programs do from now on; `close()` or a with statement ends it. Call it in
    the thread that configures DSPy. As `record_llama_index`.

    Raises:
        UsageError, StoreError: as `HopscopeHandler`.
        MissingExtraError: DSPy is not installed.
    """
    from hopscope.api.recording.frameworks.dspy import Recorded

    recorded = Recorded(
        store, tools=tools, workflow=workflow, experiment=experiment, measure=measure
    )
    recorded.begin_listening()
    return recorded
