"""Saving pictures that were found: copies in a folder, and a page to look at."""

from __future__ import annotations

import hashlib
import re
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from rungwise.cli.search._render import SearchedPage, SearchOutput
from rungwise.core import UserError, read_bytes
from rungwise.core.disk import creating, explained, make_folder, replacing
from rungwise.core.output import embedded_jpeg, page, printable, whole_characters

_SIDE = 320
_LONGEST_NAME = 150
_ODD = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]+')
"""Characters that some file system forbids in names."""
_SUFFIX_OF = ((b"\xff\xd8\xff", ".jpg"), (b"\x89PNG", ".png"), (b"GIF8", ".gif"), (b"RIFF", ".webp"), (b"BM", ".bmp"))
_STYLE = """.found { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: .8rem; }
article p { overflow-wrap: anywhere; }
"""


@dataclass(frozen=True)
class Copied:
    """Outcome of :func:`copy_to`: numbers of new and of earlier copies, and a line for each unreadable picture."""

    copied: int
    there: int
    failed: tuple[str, ...]

    def __str__(self) -> str:
        said = f"{self.copied} picture{'' if self.copied == 1 else 's'} copied"
        said += f", {self.there} there already" if self.there else ""
        return said + (f", {len(self.failed)} could not be read" if self.failed else "")


def copy_to(folder: Path, hits: Sequence[SearchedPage]) -> Copied:
    """Copy pictures into a folder without overwriting files; a name that is taken gets a number.

    Raises:
        UserError: If the folder cannot be written, or the disk is full.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> print(copy_to(folder, [SearchedPage("a.jpg", "a.jpg", 1.0, content=lambda: b"...", file_name="a.jpg")] * 2))
    1 picture copied, 1 there already
    """
    with explained(folder):
        make_folder(folder)
    copied = there = 0
    failed: list[str] = []
    for hit in hits:
        if hit.content is None:
            failed.append(f"{hit.id}: has no picture file")
            continue
        try:
            content = hit.content()
        except UserError as error:
            failed.append(str(error))
            continue
        new = _copy(content, folder, _file_name(hit, content))
        copied, there = copied + new, there + (not new)
    return Copied(copied, there, tuple(failed))


def open_hits(answered: SearchOutput, title: str, show: Callable[[str], object] | None = None) -> Path:
    """Open the pictures in the system's viewer; returns the file that was opened.

    A single picture with a file of its own is opened directly, several are put on a page that needs no other file.

    Args:
        answered: Answer of the search.
        title: Title of the page.
        show: Function that opens an address; None takes the system's browser.

    Raises:
        UserError: If nothing was found, or no file can be written.
    """
    hits = answered.hits
    if not hits:
        raise UserError("there is nothing to open: no picture was found")
    alone = Path(hits[0].path or "") if len(hits) == 1 else None
    if alone is not None and alone.is_absolute() and alone.is_file():
        place = alone
    else:
        place = Path(tempfile.mkdtemp(prefix="rungwise-")) / "found.html"
        body = "".join(_article(hit) for hit in hits)
        with replacing(place) as draft:
            draft.write_text(page(title, f"<div class=found>{body}</div>", _STYLE), encoding="utf-8")
    (show or webbrowser.open)(place.as_uri())
    return place


def _article(hit: SearchedPage) -> str:
    from rungwise.data.pictures import thumbnail

    try:
        if hit.content is None:
            raise UserError("has no picture file")
        shown = embedded_jpeg(thumbnail(hit.content(), _SIDE), hit.id)
    except UserError as error:
        shown = f'<p class="missing">{escape(whole_characters(str(error)))}</p>'
    score = "" if hit.score is None else f" ({hit.score:.3f})"
    captions = "".join(f"<p>{escape(text)}</p>" for text in hit.captions)
    return f"<article>{shown}<h3>{escape(hit.id)}{score}</h3>{captions}</article>"


def _copy(content: bytes, folder: Path, name: str) -> bool:
    """Write a copy under the first free name; False where one of them already has the same content."""
    digest, suffix = hashlib.sha256(content).digest(), Path(name).suffix
    stem = name.removesuffix(suffix)
    number = 1
    while True:
        target = folder / (name if number == 1 else f"{stem}-{number}{suffix}")
        try:
            with creating(target) as draft:
                draft.write_bytes(content)
            return True
        except FileExistsError:
            if _digest(target) == digest:
                return False
            number += 1


def _digest(path: Path) -> bytes:
    try:
        return hashlib.sha256(read_bytes(path, "picture_bytes")).digest()
    except UserError:
        return b""


def _file_name(hit: SearchedPage, content: bytes) -> str:
    """File name of a copy, which every file system accepts and which cannot leave the folder."""
    given = hit.file_name or hit.id
    last = re.split(r"[/\\]", given.rstrip("/\\"))[-1]
    clean = _ODD.sub("_", printable(last)).strip(". ")
    suffix = Path(clean).suffix
    stem = clean.removesuffix(suffix)
    stem = stem.encode("utf-8", "replace")[:_LONGEST_NAME].decode("utf-8", "ignore") or "picture"
    suffix = suffix if 1 < len(suffix) <= 6 and suffix.isascii() else ""
    return stem + (suffix or next((known for head, known in _SUFFIX_OF if content.startswith(head)), ".img"))
