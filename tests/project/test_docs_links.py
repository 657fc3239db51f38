"""Links of the documents lead somewhere, and every page is reachable from docs/README.md."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
FACES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
PAGES = [path for name in FACES if (path := ROOT / name).exists()]
PAGES += sorted((ROOT / "docs").rglob("*.md"))


def parsed(text: str) -> list[Token]:
    return MarkdownIt().enable("table").parse(text)


def links(text: str) -> list[str]:
    """Targets of links and images, code left out; addresses on the web are not looked up."""

    def inside(tokens: list[Token]) -> Iterator[str]:
        for token in tokens:
            target = token.attrGet("href") or token.attrGet("src")
            if isinstance(target, str) and not re.match(r"(https?|mailto):", target):
                yield target
            yield from inside(token.children or [])

    return list(inside(parsed(text)))


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    found: dict[str, int] = {}
    tokens = parsed(text)
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        shown = "".join(t.content for t in inline.children or [] if t.type != "softbreak")
        slug = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        count = found[slug] = found.get(slug, -1) + 1
        if count:
            found[f"{slug}-{count}"] = 0
    return set(found)


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    faults = []
    for link in links(page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (
            anchor and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            faults.append(link)
    return faults


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_resolves(page: Path) -> None:
    assert broken(page) == []


def test_every_page_is_reachable_from_the_index() -> None:
    reached: set[Path] = set()
    ahead = [ROOT / "docs" / "README.md"]
    while ahead:
        page = ahead.pop().resolve()
        if page in reached:
            continue
        reached.add(page)
        names = (link.partition("#")[0] for link in links(page.read_text(encoding="utf-8")))
        ahead += [page.parent / name for name in names if name.endswith(".md")]
    assert [str(page.relative_to(ROOT)) for page in PAGES if page.resolve() not in reached] == []


def test_no_folder_of_the_documents_is_crowded() -> None:
    """A folder of the documents holds about fifteen files, so that a reader can take it in."""
    folders = {path.parent for path in (ROOT / "docs").rglob("*")}
    counts = {folder: sum(path.is_file() for path in folder.iterdir()) for folder in folders}
    assert [str(folder) for folder, count in counts.items() if count > 16] == []


def test_pages_that_the_code_names_exist() -> None:
    """Help texts, errors and docstrings point to pages of docs/."""
    rooms = [
        room for room in ROOT.iterdir() if room.is_dir() and re.match(r"(?!build)\w", room.name)
    ]
    sources = [path for room in rooms for path in room.rglob("*.py")]
    assert len(sources) > 100
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources
        for name in re.findall(r"(?<![\w/\"'.])docs/[\w/]+\.md", path.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    }
    assert missing == set()


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `page`\n\n## Twice\n\n## Twice\n\n[a](page.md#a-page) [b](#twice-1) [c](gone.md)\n"
        "| t |\n|---|\n| [d](#twice-2) |\n\n`[e](code.md)`\n\n```\n[f](fence.md)\n```\n"
        "[g](https://example.org/x#y)\n"
    )
    assert broken(page) == ["gone.md", "#twice-2"]
