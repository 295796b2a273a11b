"""Pages of the documents: their length, their place in the menu, and that every link has an end."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.pages import DOCS, Page, pages
from tests.rooms import ROOT

WORDS = 2500
ENTRIES = 7
LEVELS = 3
GALLERY = DOCS / "howto" / "index.md"
"""The menu that may have more entries."""
BESIDE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "tests/README.md")]


def name(page: Page) -> str:
    return page.path.relative_to(ROOT).as_posix()


@cache
def anchors(path: Path) -> set[str]:
    return Page(path).anchors


def fault(page: Page, link: str) -> str | None:
    """What is wrong with a link; None if nothing is, or if it leads elsewhere."""
    if re.match(r"[a-z]+:", link):
        return None
    target, _, anchor = link.partition("#")
    path = (page.path.parent / target).resolve() if target else page.path
    if not path.exists():
        return "there is no such file"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return "that page has no such heading"
    return None


@pytest.mark.parametrize("page", [*pages(), *map(Page, BESIDE)], ids=name)
def test_every_link_leads_somewhere(page):
    wrong = [f"{name(page)}: {link}: {said}" for link in page.links if (said := fault(page, link))]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("page", pages(), ids=name)
def test_a_page_is_short_and_begins_with_what_it_is_for(page):
    assert page.words <= WORDS, f"{name(page)} has {page.words} words"
    assert re.search(r"^# \S", page.text, re.MULTILINE), "it has no title"
    assert re.match(r"[A-Z`]|\*\*", page.lead), f"{name(page)} begins without a sentence: {page.lead[:60]}"
    assert not page.lead.startswith(("```", "| ")), f"{name(page)} begins without a sentence"


def test_the_readme_is_read_in_a_minute():
    assert Page(ROOT / "README.md").words <= 700


def test_the_menu_is_flat_and_complete():
    """Inner rooms of the reference of Python are reached through the table of their room, and are no entries."""
    seen: Counter[Path] = Counter()
    level = [(DOCS / "index.md").resolve()]
    for depth in range(LEVELS + 1):
        below = []
        for path in level:
            listed = [one.resolve() for one in Page(path).contents]
            seen.update(listed)
            below += listed
            assert not (depth == LEVELS and listed and "rungwise." not in path.name), f"{path} is a fourth level"
            if depth < LEVELS and path != GALLERY:
                assert len(listed) <= ENTRIES, f"{path} lists {len(listed)}"
        level = below
    missing = {page.path.resolve() for page in pages()} - set(seen) - {(DOCS / "index.md").resolve()}
    assert not missing, f"in no menu: {sorted(map(str, missing))}"
    assert set(seen.values()) == {1}, [path for path, count in seen.items() if count > 1]


@pytest.mark.parametrize(
    ("text", "link", "said"),
    [
        ("# One\n\nA.\n\n## Two words\n", "#two-words", None),
        ("# One\n\nA.\n", "#two", "that page has no such heading"),
        ("# One\n\nA.\n", "nowhere.md", "there is no such file"),
        ("# One\n\nA.\n", "https://example.org", None),
    ],
)
def test_a_link_without_an_end_is_found(tmp_path, text, link, said):
    path = tmp_path / "page.md"
    path.write_text(text)
    assert fault(Page(path), link) == said
