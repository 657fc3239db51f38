"""An experiment as FlashRAG's `intermediate_data.json`, one file for each workflow.

FlashRAG's `Dataset` and `Item` take its records, so that its metrics judge the answers; `hopscope
import` reads it, too. A run's searches stand in turn under `retrieval_results`, its final
evidence under `retrieval_result`, its answer under `pred`.

Source: Jin et al. 2024, arXiv 2405.13576, and its public code.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from hopscope.lab.export.rows import Row
from hopscope.lab.export.sheets import whole
from hopscope.runtime.types import Passage, Run
from hopscope.store.experiments.records import Item


def record(item: Item, run: Run) -> Row:
    """One question with the output of one workflow."""
    entry, question = item.entry, item.question
    return {
        "id": question.id or entry.hash[:16],
        "question": question.text,
        "golden_answers": list(question.answers),
        "metadata": {
            "kind": entry.kind or None,
            "hops": entry.hops,
            "workflow": item.arm,
            "run": run.id,
        },
        "output": {
            "retrieval_results": {
                str(place): {
                    "query": step.query,
                    "docs": [{**_doc(hit.passage), "score": hit.score} for hit in step.ranked],
                }
                for place, step in enumerate(run.retrievals)
            },
            "retrieval_result": [_doc(passage) for passage in run.evidence],
            "pred": run.answer,
        },
    }


def write(path: Path, records: Iterable[Row]) -> int:
    """Write the file; returns the number of questions.

    Raises:
        UsageError: it cannot be written.
    """
    rows = list(records)
    with whole(path) as unfinished:
        text = json.dumps(rows, ensure_ascii=False, allow_nan=False, indent=1)
        unfinished.write_text(text + "\n", encoding="utf-8")
    return len(rows)


def _doc(passage: Passage) -> Row:
    """FlashRAG's contents begin with the title, on a line of its own."""
    return {
        "id": passage.key,
        "title": passage.title,
        "text": passage.text,
        "contents": f"{passage.title}\n{passage.text}",
    }
