"""Hopscope beside the frameworks: it comes from this checkout, with the packages that the tests run
with behind those of the frameworks; and what a recorded run holds, as JSON."""

import json
import sys

SOURCE, PACKAGES = sys.argv[2:]
sys.path.insert(0, SOURCE)
sys.path.append(PACKAGES)


def tell(store, ids):  # type: ignore[no-untyped-def]
    """Write what the runs hold into the file that the command line names."""
    runs = [store.load(id) for id in ids]
    told = [
        {
            "workflow": run.workflow,
            "question": run.question.text,
            "answer": run.answer,
            "status": run.status,
            "error": run.error and run.error.type,
            "queries": [step.query for step in run.retrievals],
            "found": [len(step.ranked) for step in run.retrievals],
            "evidence": [passage.text for passage in run.evidence],
            "shown": [len(step.shown) for step in run.steps if step.kind == "generate"],
            "tokens": [run.usage.input_tokens, run.usage.output_tokens, run.usage.uncounted],
        }
        for run in runs
    ]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(told, file)
