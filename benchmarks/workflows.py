"""Cost and exact match of each workflow on Hopland, with the embedded reader.

All workflows answer the same chain questions of the embedded world. It prints exact match, LLM
calls, retrievals, tokens and steps per question, as means over the questions.

    python benchmarks/workflows.py [--limit 100] [--workflow NAME]... [--reader READER] [--json]
"""

import argparse
import json
import sys
from statistics import mean
from typing import Any

from hopscope import workflows
from hopscope.api import parts
from hopscope.runtime import components
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.texts.answers import exact_match

OTHER_READERS = {"react", "search_agent"}
"""They need a reader that calls tools, and one that was trained to search."""


def measure(names: list[str], limit: int, reader: str) -> list[dict[str, Any]]:
    deps = Deps(
        reader=parts.reader(reader),
        retriever=parts.corpus(parts.HOPLAND),
        entailment=parts.entailment("lexical"),
    )
    chains = [q for q in hopland.questions("test") if q.kind == "chain" and q.hops in (1, 2)]
    asked = chains[:: max(1, len(chains) // limit)][:limit]
    rows = []
    for name in names:
        built = parts.workflow(name, {})
        runs = [run(built, item.question, deps) for item in asked]
        pairs = list(zip(runs, asked, strict=True))
        rows.append(
            {
                "workflow": name,
                "n": len(runs),
                "failed": sum(r.status != "ok" for r in runs),
                "exact_match": mean(
                    exact_match(r.answer or "", q.question.answers) for r, q in pairs
                ),
                "calls": mean(r.usage.calls for r in runs),
                "retrievals": mean(len(r.retrievals) for r in runs),
                "tokens": mean(r.usage.tokens for r in runs),
                "steps": mean(len(r.steps) for r in runs),
                "seconds": mean(r.seconds for r in runs),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=100, help="questions, one and two hops")
    parser.add_argument("--workflow", action="append", choices=components.names(workflows))
    parser.add_argument("--reader", default=parts.TINY)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    names = [name for name in components.names(workflows) if name not in OTHER_READERS]
    rows = measure(given.workflow or names, given.limit, given.reader)
    if given.json:
        json.dump(rows, sys.stdout, indent=2)
        return
    print(f"{'workflow':15}" + "".join(f"{key:>12}" for key in list(rows[0])[1:]))
    for row in rows:
        cells = "".join(
            f"{value:12d}" if isinstance(value, int) else f"{value:12.2f}"
            for value in list(row.values())[1:]
        )
        print(f"{row['workflow']:15}{cells}")


if __name__ == "__main__":
    main()
