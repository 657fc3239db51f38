"""The cost of spans and of the database in a workflow without meters."""

from contextlib import nullcontext
from statistics import median

from credit_parts.bench import Benchmark, Row, timed
from credit_parts.straightforward import Clock
from hopscope.api import parts
from hopscope.runtime.execution.run import run
from hopscope.store.store import Store
from hopscope.tracing.spans.telemetry import telemetry
from hopscope.tracing.wrappers.cached import CachedReader

REPEATS = 5
"""Times of which the median counts."""


def measure(bench: Benchmark) -> Row:
    """The same runs with and without spans and the database, by a reader with cached replies, so
    that the difference is visible; and their time by the reader itself."""
    workflow, questions = parts.workflow("ircot", {}), bench.questions()
    reader = bench.reader()
    real = timed(lambda: [run(workflow, question, bench.deps(reader)) for question in questions])
    deps = bench.deps(CachedReader(reader))
    steps = sum(len(run(workflow, question, deps).steps) for question in questions)
    added = []
    with Store.open(bench.folder / "runs.db") as store:
        for repeat in range(REPEATS):
            took = {}
            for traced in (True, False) if repeat % 2 else (False, True):
                where = telemetry(bench.folder / "spans.jsonl") if traced else nullcontext()
                clock = took[traced] = Clock()
                with clock.running(), where:
                    for question in questions:
                        found = run(workflow, question, deps)
                        if traced:
                            store.save(found)
            added.append(bench.seconds(took[True]) - bench.seconds(took[False]))
    return {
        "runs": len(questions),
        "steps": steps,
        "seconds of the workflow": bench.seconds(real),
        "seconds added": median(added),
        "share added": median(added) / bench.seconds(real),
        "milliseconds added a step": 1000 * median(added) / steps,
    }
