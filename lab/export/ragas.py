"""An experiment as ragas' evaluation set, one file of JSON lines for each workflow.

`EvaluationDataset.from_jsonl` reads it as single-turn samples: the question, the texts of the final
evidence, the answer, and the first gold answer as reference.

Source: https://docs.ragas.io/en/stable/concepts/components/eval_sample/
"""

from hopscope.lab.export.rows import Row
from hopscope.runtime.types import Run


def sample(run: Run) -> Row:
    """One question with its answer; without a gold answer there is no reference."""
    row: Row = {
        "user_input": run.question.text,
        "retrieved_contexts": [
            f"{passage.title}\n{passage.text}" if passage.title else passage.text
            for passage in run.evidence
        ],
        "response": run.answer,
    }
    if run.question.answers:
        row["reference"] = run.question.answers[0]
    return row
