"""Which systems an experiment compares, as users name them: `--workflow NAME` or
`--workflow NAME:KEY=VALUE,KEY=VALUE`, with `-o KEY=VALUE` for all that have such an option, and
`--policy` for all that have none of their own, `NAME:policy=POLICY`."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from hopscope.cli import retrieval, wiring
from hopscope.cli.spending import Pinned, Spending, pin
from hopscope.runtime.errors import UsageError
from hopscope.store.experiment_records import Arm


def arms(
    named: Sequence[str],
    options: Mapping[str, str],
    *,
    corpus: str,
    k: int | None,
    spend: Spending,
) -> tuple[Arm, ...]:
    """One arm for each text, all options resolved; what stands with the workflow's name counts
    before `options` and the policy of `spend`, and `options` before `k`.

    Raises:
        UsageError: there is no such workflow, option or policy, or none that takes one of
            `options`.
    """
    found: dict[str, Arm] = {}
    taken: set[str] = set()
    for text in named:
        name, colon, own = text.partition(":")
        given = wiring.parse_pairs(own.split(",")) if colon else {}
        spends = spend.model_copy(update={"policy": given.pop("policy", spend.policy)})
        common = {key: value for key, value in options.items() if wiring.takes(name, key)}
        taken |= common.keys()
        resolved = _resolved(name, {**_depth(name, corpus, k), **common, **given})
        if text in found:
            raise UsageError(f"--workflow {text} is given twice")
        settings = {"options": resolved, **_spending(pin(spends))}
        found[text] = Arm(label=text, workflow=name, settings=settings)
    for key in options:
        if key not in taken:
            names = ", ".join(arm.workflow for arm in found.values())
            raise UsageError(f"no workflow among {names} has an option {key!r}")
    return tuple(found.values())


def pinned(arm: Arm) -> Pinned:
    """What its runs may spend, and who decides."""
    return Pinned.model_validate(arm.settings.get("spending", {}))


def _spending(spends: Pinned) -> dict[str, JsonValue]:
    """Left out where nothing was asked for: most are so, and were before there was such a thing."""
    return {} if spends == Pinned() else {"spending": spends.model_dump(mode="json")}


def _resolved(name: str, given: Mapping[str, str]) -> dict[str, JsonValue]:
    from hopscope import workflows
    from hopscope.runtime import components

    return components.parse_options(components.load(workflows, name).build, given)


def _depth(name: str, corpus: str, k: int | None) -> dict[str, str]:
    """How many passages a retrieval gives, where the workflow has that option; those that choose
    among candidates have a k that says how many to choose."""
    if not wiring.takes(name, "k"):
        return {}
    if k is None and not wiring.takes(name, "candidates"):
        k = retrieval.size(corpus)
    return {} if k is None else {"k": str(k)}
