"""Hopscope: run multi-step RAG workflows and measure the worth of each retrieval.

    import hopscope

    session = hopscope.Session()
    run = session.ask("What is the headquarters city of the company that employs Elsa Wilby?")
    run.show()

The names in `__all__` are the library; docs/python.md explains them. Each is imported when it is
first used, so that `import hopscope` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hopscope.api.credits import CreditRow, Credits
    from hopscope.api.measured_run import MeasuredRun
    from hopscope.api.pushing.pulling import pull
    from hopscope.api.pushing.pushing import push
    from hopscope.api.recording.background import Measure
    from hopscope.api.recording.decorators import generation, retrieval
    from hopscope.api.recording.frameworks.langchain import HopscopeHandler
    from hopscope.api.recording.frameworks.listening import (
        record_dspy,
        record_haystack,
        record_llama_index,
    )
    from hopscope.api.recording.guarded import guarded
    from hopscope.api.recording.middleware import middleware
    from hopscope.api.recording.recording import Recording, recording
    from hopscope.api.session import Interrupted, Session
    from hopscope.api.store import Store
    from hopscope.api.turn_rewards.scoring import rewards
    from hopscope.lab.agreement import labels
    from hopscope.lab.comparison import Comparison, compare
    from hopscope.lab.evaluating import Experiment, evaluate, evaluate_async
    from hopscope.lab.gate.gate import gate, write_baseline
    from hopscope.lab.gate.report import GateReport
    from hopscope.lab.run_reports import decompose_errors, erag, score
    from hopscope.runtime.budget.ledger import Limits
    from hopscope.runtime.errors import HopscopeError, UsageError
    from hopscope.runtime.types import Credit, Hit, Measurement, Passage, Question, Run, Step
    from hopscope.store.importers.importing import import_runs
    from hopscope.tracing.rewards.turns import TurnRewards

__version__ = "0.3.0"

__all__ = [
    "Comparison",
    "Credit",
    "CreditRow",
    "Credits",
    "Experiment",
    "GateReport",
    "Hit",
    "HopscopeError",
    "HopscopeHandler",
    "Interrupted",
    "Limits",
    "Measure",
    "MeasuredRun",
    "Measurement",
    "Passage",
    "Question",
    "Recording",
    "Run",
    "Session",
    "Step",
    "Store",
    "TurnRewards",
    "UsageError",
    "compare",
    "decompose_errors",
    "erag",
    "evaluate",
    "evaluate_async",
    "gate",
    "generation",
    "guarded",
    "import_runs",
    "labels",
    "middleware",
    "pull",
    "push",
    "record_dspy",
    "record_haystack",
    "record_llama_index",
    "recording",
    "retrieval",
    "rewards",
    "score",
    "write_baseline",
]

_HOMES = {
    "Comparison": "lab.comparison",
    "Credit": "runtime.types",
    "CreditRow": "api.credits",
    "Credits": "api.credits",
    "Experiment": "lab.evaluating",
    "GateReport": "lab.gate.report",
    "Hit": "runtime.types",
    "HopscopeError": "runtime.errors",
    "HopscopeHandler": "api.recording.frameworks.langchain",
    "Interrupted": "api.session",
    "Limits": "runtime.budget.ledger",
    "Measure": "api.recording.background",
    "Measurement": "runtime.types",
    "MeasuredRun": "api.measured_run",
    "Passage": "runtime.types",
    "Question": "runtime.types",
    "Recording": "api.recording.recording",
    "Run": "runtime.types",
    "Session": "api.session",
    "Step": "runtime.types",
    "Store": "api.store",
    "TurnRewards": "tracing.rewards.turns",
    "UsageError": "runtime.errors",
    "compare": "lab.comparison",
    "decompose_errors": "lab.run_reports",
    "erag": "lab.run_reports",
    "evaluate": "lab.evaluating",
    "evaluate_async": "lab.evaluating",
    "gate": "lab.gate.gate",
    "generation": "api.recording.decorators",
    "guarded": "api.recording.guarded",
    "import_runs": "store.importers.importing",
    "labels": "lab.agreement",
    "middleware": "api.recording.middleware",
    "pull": "api.pushing.pulling",
    "push": "api.pushing.pushing",
    "record_dspy": "api.recording.frameworks.listening",
    "record_haystack": "api.recording.frameworks.listening",
    "record_llama_index": "api.recording.frameworks.listening",
    "recording": "api.recording.recording",
    "retrieval": "api.recording.decorators",
    "rewards": "api.turn_rewards.scoring",
    "score": "lab.run_reports",
    "write_baseline": "lab.gate.gate",
}
"""Where each name of `__all__` is defined."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
