"""Lucene's own BM25, by way of the Anserini jar that pyserini carries: a yardstick for ours.

Needs `pip install 'hopscope[lucene]'` and Java 21 or newer. The jar is called directly:
importing pyserini's searcher would load models and ask for an API key.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

JAVA_WANTED = 21


class Unavailable(Exception):
    """Why Lucene cannot be asked here."""


class Ranked(NamedTuple):
    """What Lucene found and how long it took."""

    ids: list[list[str]]
    build_seconds: float
    search_seconds: float


def rank(
    passages: Sequence[tuple[str, str]], queries: Sequence[str], *, k: int, folder: Path
) -> Ranked:
    """Index `(id, content)` pairs in `folder` and search them, k1 0.9 and b 0.4."""
    java = _java()
    start = perf_counter()
    source, index = folder / "lucene-source", folder / "lucene-index"
    source.mkdir()
    with (source / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for id, contents in passages:
            file.write(json.dumps({"id": id, "contents": contents}) + "\n")
    arguments = ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator"]
    arguments += ["-quiet", "-threads", "1", "-input", str(source), "-index", str(index)]
    java("io.anserini.index.IndexCollection").main(arguments)
    build_seconds = perf_counter() - start
    searcher = java("io.anserini.search.SimpleSearcher")(str(index))
    searcher.set_bm25(0.9, 0.4)
    start = perf_counter()
    ids = [[hit.docid for hit in searcher.search(query, k)] for query in queries]
    return Ranked(ids, build_seconds, perf_counter() - start)


def _java() -> Any:
    """`autoclass` of a running Java machine that knows Anserini."""
    spec = find_spec("pyserini")
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable("pyserini is not installed: pip install 'hopscope[lucene]'")
    jars = list(Path(spec.submodule_search_locations[0]).glob("resources/jars/anserini-*.jar"))
    if not jars:
        raise Unavailable("pyserini is installed without its Anserini jar")
    os.environ["JAVA_HOME"] = str(_java_home())
    try:
        import jnius_config
    except ImportError:
        raise Unavailable("pyjnius is not installed: pip install 'hopscope[lucene]'") from None
    jnius_config.add_options("-Xmx1g", "--add-modules=jdk.incubator.vector")
    jnius_config.add_classpath(str(jars[0]))
    from jnius import autoclass

    return autoclass


def _java_home() -> Path:
    """The newest Java found: JAVA_HOME, the one on the path, then the usual folders."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    if on_path := shutil.which("java"):
        homes.append(Path(on_path).resolve().parents[1])
    for root in ("/usr/lib/jvm", "/Library/Java/JavaVirtualMachines"):
        homes += sorted(Path(root).glob("*")) + sorted(Path(root).glob("*/Contents/Home"))
    versions = {home: _version(home) for home in homes if (home / "bin" / "java").is_file()}
    home = max(versions, key=lambda home: versions[home], default=None)
    if home is None or versions[home] < JAVA_WANTED:
        found = f"the newest found is {versions[home]}" if home else "none was found"
        raise Unavailable(f"Java {JAVA_WANTED} or newer is needed, {found}: set JAVA_HOME")
    return home


def _version(home: Path) -> int:
    asked = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True)
    found = re.search(r'version "(\d+)', asked.stderr)
    return int(found.group(1)) if found else 0
