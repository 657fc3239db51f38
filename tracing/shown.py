"""Which passages a run showed to a model: the text that its answer can have come from."""

from hopscope.runtime.types import Passage, Run, Step


def passages_by_key(run: Run) -> dict[str, Passage]:
    """All passages of a run."""
    found: dict[str, Passage] = {}
    for step in run.steps:
        for passage in (*step.evidence, *(hit.passage for hit in step.ranked)):
            found.setdefault(passage.key, passage)
    return found


def shown_passages(run: Run) -> dict[str, Passage]:
    """Those that some step showed, by key, in order of first showing."""
    known = passages_by_key(run)
    shown = dict.fromkeys(key for step in run.steps for key in step.shown)
    return {key: known[key] for key in shown if key in known}


def asked_a_model(step: Step) -> bool:
    return bool(step.exchanges or step.shown)
