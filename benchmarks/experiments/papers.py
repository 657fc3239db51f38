"""Makes docs/evidence/papers.md: each table of five papers with its command, and figures here.

The commands are for a user's own files and models; `FILE`, `INDEX` and `MODEL` stand for those. The
figures here are those of the embedded reader on its generated world, by the same suites.

    export PYTHONPATH=benchmarks
    python benchmarks/experiments/papers.py [--limit 20] [--seed 0] > docs/evidence/papers.md
"""

import argparse
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from experiments.paper_tables.eor import EOR
from experiments.paper_tables.erag import ERAG
from experiments.paper_tables.grogu import GROGU
from experiments.paper_tables.item import ITEM
from experiments.paper_tables.result import DASH, Result, Source
from experiments.paper_tables.seper import COMPARED, SEPER

from hopscope.api import parts
from hopscope.lab.running_suites import Suites
from hopscope.runtime.types import Measurement

PAPERS: Mapping[str, Sequence[Result]] = {
    "SePer (Dai et al. 2025, arXiv 2503.01478)": SEPER,
    "eRAG (Salemi and Zamani 2024, arXiv 2404.13781)": ERAG,
    "EoR (Li et al. 2024, arXiv 2405.20680)": EOR,
    "ITEM (Zhang et al. 2026, arXiv 2406.11290)": ITEM,
    "GroGU (2026)": GROGU,
}

INTRODUCTION = """\
# Evidence: the papers' tables

Each table and figure of five papers: the command that makes it on your own questions with your
own model, what differs, a figure of the paper, and the same figure of the embedded reader, with
its 95 % interval. That reader answers a few questions of its generated world, another and easier
task: its figures show that the command works, not that those of the paper are met. Both are in the
paper's unit.

`FILE`, `INDEX`, `MODEL`, `ADAPTER`, `READER`, `POOL` and `EXP`, the name of an experiment, stand
for your own ([on your own data](../lab.md#on-your-own-data)); [credit](../credit.md#presets) has
the presets. Made by
"""

Figures = Mapping[str, Mapping[str, Measurement]]
"""The figures of each suite by name."""


def suites() -> list[str]:
    """The suites that the page has figures of."""
    found = [one.here.suite for own in PAPERS.values() for one in own if one.here]
    return list(dict.fromkeys(found))


def measured(limit: int, seed: int) -> Figures:
    """Run the suites on a generated world."""
    others = [name for name in suites() if name != "seper"]
    found: dict[str, Mapping[str, Measurement]] = {}
    for names, entailments in ((["seper"], COMPARED), (others, ())):
        running = Suites(names, parts.TINY, None, seed=seed, limit=limit, entailments=entailments)
        found |= {outcome.name: outcome.figures for outcome in running.run()}
    return found


def page(figures: Figures, command: str) -> str:
    """The page as Markdown.

    Raises:
        KeyError: a figure that the table names does not exist.
    """
    lines = [
        INTRODUCTION,
        "    export PYTHONPATH=benchmarks",
        f"    {command}",
        "",
    ]
    for title, results in PAPERS.items():
        lines += [
            f"## {title}",
            "",
            "| table | what it shows | command | what differs | the paper | here |",
            "|---|---|---|---|---|---|",
            *(row(result, figures) for result in results),
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def row(result: Result, figures: Figures) -> str:
    commands = "; ".join(f"`{command}`" for command in result.commands) or DASH
    cells = [
        result.place,
        result.shows,
        commands,
        result.differs,
        result.paper,
        here(result, figures),
    ]
    return f"| {' | '.join(cells)} |"


def here(result: Result, figures: Figures) -> str:
    """The figure with its interval, the figures of another benchmark, or the reason why there is
    none."""
    if result.elsewhere:
        return result.elsewhere
    if result.here is None:
        return f"{DASH} ({result.unmeasured})"
    found = figure(figures, result.here)
    if found.value is None:
        return f"{DASH} ({found.reason})"
    scale, digits = (100, 1) if result.here.percent else (1, 3)
    text = f"{found.value * scale:.{digits}f}"
    if found.low is not None and found.high is not None:
        text += f" [{found.low * scale:.{digits}f}, {found.high * scale:.{digits}f}]"
    return f"{text} (n {found.n})"


def figure(figures: Figures, source: Source) -> Measurement:
    """
    Raises:
        KeyError: there is none of this name.
    """
    for name, found in figures[source.suite].items():
        if fnmatchcase(name, source.name):
            return found
    raise KeyError(source.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    command = f"python benchmarks/experiments/papers.py --limit {given.limit} --seed {given.seed}"
    print(page(measured(given.limit, given.seed), command), end="")


if __name__ == "__main__":
    main()
