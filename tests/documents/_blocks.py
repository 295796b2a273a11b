"""The blocks of code of the documents: where they stand, what they are, and why some of them are not run."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.pages import pages
from tests.rooms import ROOT

COMMANDS = ("", "sh", "bash", "console")
"""Languages of blocks of commands; a block without a language is one."""

LANGUAGES = (*COMMANDS, "python", "yaml", "json", "toml")
"""Languages of blocks that are run or read; others are pictures, menus, or text such as an output."""

REASONS = ("network", "GPU", "container", "cluster", "another system", "a service", "a long training", "more data")
"""Why a block may not be run: it needs what a machine that runs the tests need not have."""

_FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=indent)(?P=fence)`*~*[ ]*$",
    re.DOTALL | re.MULTILINE,
)
_MARKER = re.compile(r"<!-- not run: (.*?) -->\s*\Z")
_FILE = re.compile(r"`([\w.-]+\.(?:py|ya?ml|json|toml))`")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        page: Path of the page in the repository.
        line: Line of the fence, from 1.
        language: Word after the fence.
        text: What stands between the fences, without their indentation.
        not_run: Reason of the marker directly before the fence; None without one.
        digest: Hash of the block and of all blocks of the page before it, on which its outcome depends.
        file: Name of the file that the block shows, which later blocks may read; empty if none is named.
    """

    page: str
    line: int
    language: str
    text: str
    not_run: str | None
    digest: str
    file: str = ""

    @property
    def place(self) -> str:
        """Page and line."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Document:
    """A page, and the blocks of it that are run or read.

    Attributes:
        name: Path of the page in the repository, with slashes.
    """

    name: str

    @property
    def path(self) -> Path:
        """File of the page."""
        return ROOT / self.name

    @cached_property
    def every_block(self) -> list[Block]:
        """All fenced blocks, also text and menus."""
        text = self.path.read_text(encoding="utf-8")
        found, running = [], hashlib.sha256()
        for match in _FENCE.finditer(text):
            indent = match["indent"]
            body = "".join(line.removeprefix(indent) for line in match["text"].splitlines(keepends=True))
            language = _language(match["info"].strip())
            before = text[: match.start()]
            marker = _MARKER.search(before[-300:])
            if language in LANGUAGES:
                running.update(f"{language}\n{body}".encode())
            found.append(
                Block(
                    self.name,
                    before.count("\n") + 1,
                    language,
                    body,
                    marker[1].strip() if marker else None,
                    running.hexdigest()[:16],
                    _file_of(language, body, before),
                )
            )
        return found

    @property
    def blocks(self) -> list[Block]:
        """The blocks that are run or read, in order."""
        return [one for one in self.every_block if one.language in LANGUAGES]


def _language(info: str) -> str:
    """The language of a fence; directives of MyST other than a block of code keep their braces.

    >>> _language("python"), _language("{code-block} yaml"), _language("{toctree}"), _language("")
    ('python', 'yaml', '{toctree}', '')
    """
    if info.startswith("{code-block}"):
        return info.removeprefix("{code-block}").strip()
    return (info.split() or [""])[0]


def _file_of(language: str, text: str, before: str) -> str:
    """The file that a block shows: named by its first line as a comment, or by the sentence that ends before it.

    >>> _file_of("python", "# lengths.py\\nimport re\\n", "")
    'lengths.py'
    >>> _file_of("yaml", "epochs: 3\\n", "Write this into `mine.yaml`:\\n\\n")
    'mine.yaml'
    """
    if language in COMMANDS or language not in LANGUAGES:
        return ""
    first = text.partition("\n")[0]
    if match := re.fullmatch(r"# ([\w.-]+\.\w+)\s*", first):
        return match[1]
    said = before.rstrip().rpartition("\n\n")[2]
    named = _FILE.findall(said) if said.endswith(":") else []
    endings = {"python": (".py",), "yaml": (".yaml", ".yml")}.get(language, (f".{language}",))
    fitting = [name for name in named if name.endswith(endings)]
    return fitting[-1] if fitting else ""


def documents() -> list[Document]:
    """README.md and all pages of the site that have blocks, sorted."""
    every = [
        Document(path.relative_to(ROOT).as_posix()) for path in (ROOT / "README.md", *(one.path for one in pages()))
    ]
    return [one for one in every if one.blocks]
