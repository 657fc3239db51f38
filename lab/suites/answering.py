"""Questions answered by workflows within a suite."""

from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Question, Run


def answer(workflow: Workflow, question: Question, deps: Deps) -> Run:
    """A run, which may have failed. An interrupted run ends the suite.

    Raises:
        KeyboardInterrupt: Ctrl-C, which the run has caught to keep its record.
    """
    found = run(workflow, question, deps)
    if found.status == "interrupted":
        raise KeyboardInterrupt
    return found
