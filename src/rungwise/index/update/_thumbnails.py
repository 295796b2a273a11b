"""Small copies of the pictures of an index, in a folder of its own: a file for each content.

They save a page the opening of large files, and stay when the files are elsewhere. Nothing is lost with one: it can be
made again from its picture. A file holds a JPEG and, after its end, where readers of JPEG do not look, its SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rungwise.core import UserError, read_bytes
from rungwise.core.disk import explained
from rungwise.data.pictures import thumbnail

FOLDER = "thumbnails"
SUFFIX = ".thumbnail"
"""Suffix of the files; not that of a picture, as the folder may lie where pictures are looked for."""
SIDE = 320
"""Longest side of a copy in pixels."""
MOST_BYTES = 128 << 10
"""Bytes of the largest copy that is kept."""

_CONTENT = re.compile(r"[0-9a-f]{64}")
_DIGEST_BYTES = 32


def can_keep(content: str, small: bytes) -> bool:
    """Whether a copy is small enough, and its name the SHA-256 of a file.

    >>> can_keep("0a" * 32, b"small"), can_keep("../../other", b"small")
    (True, False)
    """
    return _CONTENT.fullmatch(content) is not None and len(small) <= MOST_BYTES


class Thumbnails:
    """The small copies in an index folder, by the SHA-256 of the picture's file.

    >>> import io, tempfile
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (640, 480)).save(file, "PNG")
    >>> kept = Thumbnails(Path(tempfile.mkdtemp()))
    >>> small = kept.make(file.getvalue())
    >>> kept.put("0a" * 32, small)
    >>> kept.read("0a" * 32) == small, Image.open(io.BytesIO(small)).size
    (True, (320, 240))
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER

    def make(self, data: bytes) -> bytes | None:
        """A small JPEG of a picture; None where it cannot be read, or the copy would not be small."""
        try:
            small = thumbnail(data, SIDE)
        except UserError:
            return None
        return small if len(small) <= MOST_BYTES else None

    def put(self, content: str, small: bytes) -> None:
        """Keep a copy under the SHA-256 of the picture's file.

        Raises:
            UserError: If the name is no SHA-256, the copy is too large, or the place cannot be written.
        """
        if not can_keep(content, small):
            raise UserError(f"{self._folder}: {content[:70]!r} of {len(small)} bytes is no small copy of a picture")
        path = self._path(content)
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Whole or absent. It is not brought to the disk at once: a power cut loses what can be made again.
            draft = path.with_suffix(f".{secrets.token_hex(8)}")
            try:
                with draft.open("xb") as file:
                    file.write(small + hashlib.sha256(small).digest())
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)

    def has(self, content: str) -> bool:
        """Whether there is a copy for this content."""
        return _CONTENT.fullmatch(content) is not None and self._path(content).exists()

    def read(self, content: str) -> bytes | None:
        """The copy of the picture with this content; None where there is none, or it is damaged."""
        if _CONTENT.fullmatch(content) is None:
            return None
        try:
            data = read_bytes(self._path(content), "picture_bytes")
        except (UserError, OSError):
            return None
        small, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        return small if hashlib.sha256(small).digest() == digest else None

    def remove(self, contents: Iterable[str]) -> None:
        """Remove the copies of these contents; contents without a copy are passed over."""
        for content in contents:
            if _CONTENT.fullmatch(content):
                with suppress(OSError):
                    self._path(content).unlink()

    def keep_only(self, contents: Iterable[str]) -> int:
        """Remove all copies but these, and what a killed run left; gives the number of bytes freed."""
        wanted, freed = {self._path(one) for one in contents}, 0
        for place, _, names in os.walk(self._folder):
            for name in names:
                path = Path(place) / name
                if path not in wanted:
                    with suppress(OSError):
                        freed += path.stat().st_size
                        path.unlink()
        return freed

    def _path(self, content: str) -> Path:
        return self._folder / content[:2] / f"{content}{SUFFIX}"
