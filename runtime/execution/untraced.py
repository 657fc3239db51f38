"""Switches off LangChain's own tracing, so that a run sends its texts nowhere.

LangGraph traces through LangChain's callbacks. They come from the environment (`LANGSMITH_TRACING`,
`LANGCHAIN_TRACING_V2` and their variants post every question, passage and prompt to LangSmith),
from `langsmith.configure`, and from the context that `run()` is called in. Hopscope's own spans
(`runtime.spans`) go somewhere only if the user names a place.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.context import tracing_v2_callback_var
from langsmith import tracing_context


@contextmanager
def untraced() -> Iterator[None]:
    """Switch LangChain's tracing off for this thread and the threads that inherit its context.

    Changes neither the environment nor any module's state, and restores the context variables.
    """
    # LangGraph adds the callbacks of the runnable that called it.
    caller = var_child_runnable_config.set(None)
    # LangChain uses this tracer before it makes one of its own. None will not do: with
    # LANGCHAIN_TRACING set and no tracer LangChain raises a RuntimeError.
    tracer = tracing_v2_callback_var.set(BaseCallbackHandler())  # type: ignore[arg-type]
    try:
        with tracing_context(enabled=False, parent=False):
            yield
    finally:
        tracing_v2_callback_var.reset(tracer)
        var_child_runnable_config.reset(caller)
