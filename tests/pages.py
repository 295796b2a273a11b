"""The pages of the documents, for tests that hold them to the program and to each other."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mdit_py_plugins.anchors.index import slugify, unique_slug

from tests.rooms import ROOT

DOCS = ROOT / "docs"
_FENCE = re.compile(r"^(`{3,}|~{3,}|:{3,})(.*?)\n(.*?)^\1", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)")


def pages_below(folder: str) -> str:
    """All pages below a folder of the documents as one text, so that a page may be split."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((DOCS / folder).rglob("*.md")))


@dataclass(frozen=True)
class Page:
    """One file of Markdown."""

    path: Path

    @cached_property
    def text(self) -> str:
        """All of it."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def prose(self) -> str:
        """The text without fenced blocks."""
        return _FENCE.sub("", self.text)

    @property
    def words(self) -> int:
        """Number of words, those in tables and blocks of code included."""
        return len([word for word in self.text.split() if re.search(r"\w", word)])

    @property
    def lead(self) -> str:
        """What stands below the title, up to the first empty line."""
        return re.split(r"^# .+$", self.text, maxsplit=1, flags=re.MULTILINE)[-1].strip().partition("\n\n")[0]

    @cached_property
    def anchors(self) -> set[str]:
        """What a link can name on the page: its headings, and targets that are written out."""
        slugs: set[str] = set()
        for heading in re.findall(r"^#{1,4} (.+)$", self.prose, re.MULTILINE):
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
            unique_slug(slugify(plain), slugs)
        return slugs | set(re.findall(r"^\(([\w.-]+)\)=$", self.text, re.MULTILINE))

    @property
    def links(self) -> list[str]:
        """Targets of all links and pictures."""
        return _LINK.findall(re.sub(r"`[^`\n]+`", "", self.prose))

    @property
    def contents(self) -> list[Path]:
        """The pages that its menus list."""
        listed = [
            line.strip()
            for _, head, body in _FENCE.findall(self.text)
            if head.strip() == "{toctree}"
            for line in body.splitlines()
            if line.strip() and not line.startswith(":")
        ]
        return [self.path.parent / f"{one.rpartition('<')[2].rstrip('>')}.md" for one in listed]


def pages() -> list[Page]:
    """All pages of the site."""
    return [Page(path) for path in sorted(DOCS.rglob("*.md")) if not path.is_relative_to(DOCS / "_build")]
