"""The arms of an experiment, from `--workflow NAME` or `--workflow NAME:KEY=VALUE,KEY=VALUE`, with
`-o KEY=VALUE` for all workflows that have the option, and `--policy` for all without their own,
`NAME:policy=POLICY`."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from hopscope.api import parts, retrieval
from hopscope.api.presets import Presets
from hopscope.api.spending import Pinned, Spending, pin
from hopscope.runtime import code_files
from hopscope.runtime.errors import MissingExtraError, UsageError
from hopscope.runtime.execution.run import Workflow
from hopscope.runtime.specs import Spec
from hopscope.store.experiments.records import Arm

HASH = "hash of the file"


def arms(
    named: Sequence[str],
    options: Mapping[str, str],
    *,
    presets: Presets,
    corpus: str | None,
    k: int | None,
    spend: Spending,
) -> tuple[Arm, ...]:
    """One arm for each text, with all options resolved. Options in the text take precedence over
    `options` and the policy of `spend`, `options` over `k`, and `k` over `presets`. Without a
    `corpus` the retriever is one in memory.

    Raises:
        UsageError: there is no such workflow, option or policy, or no workflow takes one of
            `options`.
    """
    found: dict[str, Arm] = {}  # by label
    taken: set[str] = set()
    shared = pin(spend)
    for text in named:
        spec = Spec.parse(text, argument=False)
        name, given = spec.name, dict(spec.options)
        own = given.pop("policy", None)
        common = {key: value for key, value in options.items() if parts.takes(name, key)}
        taken |= common.keys()
        depth, preset = _depth(name, corpus, k), presets.of_workflow(name)
        least = {**depth, **preset} if k is None else {**preset, **depth}
        label, workflow = code_files.shown(text), code_files.shown(name)
        try:
            resolved = parts.workflow_options(name, {**least, **common, **given})
            spends = shared if own is None else pin(spend.model_copy(update={"policy": own}))
        except MissingExtraError:
            raise
        except UsageError as error:
            raise UsageError(f"workflow {label}: {error}") from None
        if label in found:
            raise UsageError(f"the workflow {label} is given twice (--workflow)")
        settings = {"options": resolved, **_code(name), **_spending(spends)}
        found[label] = Arm(label=label, workflow=workflow, settings=settings)
    for key in options:
        if key not in taken:
            names = ", ".join(arm.workflow for arm in found.values())
            raise UsageError(f"no workflow among {names} has an option {key!r}")
    return tuple(found.values())


def of_workflow(workflow: Workflow, spend: Spending) -> Arm:
    """The arm of a workflow in memory, which cannot be rebuilt from its name."""
    settings = {"options": dict(workflow.options), **_spending(pin(spend))}
    return Arm(label=workflow.name, workflow=workflow.name, settings=settings)


def pinned(arm: Arm) -> Pinned:
    """The limits and the policy of its runs."""
    return Pinned.model_validate(arm.settings.get("spending", {}))


def component(arm: Arm) -> str:
    """The name that loads its workflow; for a code file with the hash at the start."""
    code = arm.settings.get("code")
    return f"{arm.workflow}#{code[HASH]}" if isinstance(code, dict) else arm.workflow


def _code(name: str) -> dict[str, JsonValue]:
    """The settings that identify a user's code file."""
    for hash in code_files.hashes(name).values():
        return {"code": {HASH: hash}}
    return {}


def _spending(spends: Pinned) -> dict[str, JsonValue]:
    """Empty without limits and policy, as in experiments older than these settings."""
    return {} if spends == Pinned() else {"spending": spends.model_dump(mode="json")}


def _depth(name: str, corpus: str | None, k: int | None) -> dict[str, str]:
    """The number of passages per retrieval, if the workflow has that option."""
    if k is None:
        return {} if corpus is None else retrieval.depth(name, retrieval.parse(corpus))
    return {"k": str(k)} if parts.takes(name, "k") else {}
