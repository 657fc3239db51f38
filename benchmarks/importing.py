"""The time and memory of importing runs: three searches of five passages each, in several formats.

It writes files of made-up runs, imports each into a fresh database, and imports it again, which
must change nothing.

    python benchmarks/importing.py [--runs 10000] [--formats messages,search_r1,otlp] [--json]
"""

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from generated import passages

from hopscope.runtime.types import Passage
from hopscope.store.importers.importing import import_runs
from hopscope.store.store import Store

SEARCHES, K, CORPUS = 3, 5, 20_000
Searches = list[tuple[str, list[Passage]]]


def searches(count: int, corpus: list[Passage], chance: random.Random) -> Iterator[Searches]:
    """The queries of each run, with what they found."""
    for number in range(count):
        yield [
            (f"query {place} of run {number}", chance.sample(corpus, K))
            for place in range(SEARCHES)
        ]


def messages(number: int, made: Searches) -> dict[str, Any]:
    """A transcript with tool calls."""
    turns: list[dict[str, Any]] = [{"role": "user", "content": f"Who is number {number}?"}]
    for place, (query, found) in enumerate(made):
        function = {"name": "search", "arguments": json.dumps({"query": query})}
        turns.append(
            {"role": "assistant", "tool_calls": [{"id": f"{place}", "function": function}]}
        )
        listed = [{"id": p.id, "title": p.title, "text": p.text} for p in found]
        turns.append({"role": "tool", "tool_call_id": f"{place}", "content": json.dumps(listed)})
    turns.append({"role": "assistant", "content": f"number {number}"})
    return {"messages": turns}


def search_r1(number: int, made: Searches) -> dict[str, Any]:
    """A rollout with tags."""
    parts = []
    for query, found in made:
        glued = "".join(
            f'Doc {place}(Title: "{p.title}") {p.text}\n' for place, p in enumerate(found, start=1)
        )
        parts.append(f"Hm. <search>{query}</search>\n\n<information>{glued}</information>\n\n")
    text = "".join(parts) + f"<answer>number {number}</answer>"
    return {"question": f"Who is number {number}?", "output": text}


def otlp(number: int, made: Searches) -> dict[str, Any]:
    """A trace by OpenInference's conventions."""
    spans = [_span(number, 0, "CHAIN", {"input.value": f"Who is number {number}?"})]
    for place, (query, found) in enumerate(made, start=1):
        told: dict[str, str] = {"input.value": query}
        for rank, passage in enumerate(found):
            at = f"retrieval.documents.{rank}.document"
            told |= {f"{at}.id": passage.id, f"{at}.content": passage.text}
            told[f"{at}.metadata"] = json.dumps({"title": passage.title})
        spans.append(_span(number, place, "RETRIEVER", told))
    spans.append(_span(number, SEARCHES + 1, "LLM", {"output.value": f"number {number}"}))
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def _span(number: int, place: int, kind: str, told: dict[str, str]) -> dict[str, Any]:
    values = {"openinference.span.kind": kind, **told}
    return {
        "traceId": f"{number + 1:032x}",
        "spanId": f"{number * 100 + place + 1:016x}",
        "parentSpanId": f"{number * 100 + 1:016x}" if place else "",
        "name": kind.lower(),
        "startTimeUnixNano": str(10**18 + place),
        "endTimeUnixNano": str(10**18 + 100),
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in values.items()],
    }


FORMATS: dict[str, Callable[[int, Searches], dict[str, Any]]] = {
    "messages": messages,
    "search_r1": search_r1,
    "otlp": otlp,
}


def measure(name: str, runs: int, folder: Path) -> dict[str, Any]:
    """One format: write, import, import again."""
    chance = random.Random(0)
    corpus = list(passages(CORPUS))
    path = folder / f"{name}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number, made in enumerate(searches(runs, corpus, chance)):
            file.write(json.dumps(FORMATS[name](number, made)) + "\n")
    with Store.open(folder / f"{name}.db") as store:
        began = time.process_time()
        report = import_runs(path, store=store)
        first = time.process_time() - began
        assert (report.stored, report.retrievals) == (runs, runs * SEARCHES), report
        began = time.process_time()
        again = import_runs(path, store=store)
        second = time.process_time() - began
        assert (again.stored, again.known) == (0, runs), again
        size = store.size()
    return {
        "format": name,
        "runs": runs,
        "file_mb": path.stat().st_size / 1e6,
        "database_mb": size / 1e6,
        "cpu_seconds": first,
        "again_cpu_seconds": second,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(name, given.runs, Path(folder)) for name in given.formats.split(",")]
    if given.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(
            f"{row['format']}: {row['runs']:,} runs, {row['file_mb']:.0f} MB: "
            f"{row['cpu_seconds']:.1f} s of processor time, "
            f"again {row['again_cpu_seconds']:.1f} s; database {row['database_mb']:.0f} MB; "
            f"at most {row['peak_mb']:.0f} MB of memory"
        )


if __name__ == "__main__":
    main()
