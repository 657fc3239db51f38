"""Tells of a set of prompts that replaces none of a workflow's."""

from collections.abc import Sequence

from hopscope import workflows
from hopscope.runtime import components
from hopscope.runtime.prompting import loading, prompt_checks


def told(prompts: str, workflow: str) -> str:
    """A sentence where the set, or that of this folder, replaces no prompt that the workflow asks
    in; empty if it does, and for the default set, with which no run is recorded.

    Raises:
        UsageError: there is no such set or workflow, or a file of the set cannot be used.
    """
    own, loaded = asked_in(workflow), loading.load(prompts)
    if not own or not loaded.replaced or any(map(loaded.differs, own)):
        return ""
    return (
        f"{prompts} replaces no prompt of the workflow {workflow} ({', '.join(own)}): its runs are "
        f"recorded with {prompts} and ask as without it, but for a policy, a stage of the "
        "retriever or an answer that a spent budget forces"
    )


def asked_in(workflow: str) -> Sequence[str]:
    """The prompts that a workflow asks in: those of the folder of its name, or of the folders that
    its module names as `PROMPT_FOLDERS`. None of a user's own workflow, where they are not known.
    """
    module = components.load(workflows, workflow)
    folders = getattr(module, "PROMPT_FOLDERS", (workflow,))
    return [name for name in prompt_checks.names() if name.partition("/")[0] in folders]
