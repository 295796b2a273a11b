"""Folders that appear as a whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from rungwise.core.errors import UserError
from rungwise.core.files import explained

DROPPINGS = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
"""What file managers leave in every folder that somebody looks into; nobody misses it."""


@contextmanager
def replacing_folder(folder: Path, parts: Collection[str], what: str) -> Iterator[Path]:
    """Yield a sibling folder to write to; it takes the place of ``folder`` only when the block ends well.

    What stood there before stays until all new files are on the disk, and comes back where the swap itself fails.

    Args:
        folder: Made, together with its parents; replaced if it holds nothing but ``parts``.
        parts: Names of the files and folders that such a folder may hold.
        what: What such a folder is called in messages, with its article, such as ``"an index"``.

    Raises:
        UserError: If a file or a folder with other files stands there, the disk is full, or the place may not be
            written. What stood there before is then untouched.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "index"
    >>> with replacing_folder(target, {"index.json"}, "an index") as draft:
    ...     _ = (draft / "index.json").write_text("{}")
    >>> [file.name for file in target.iterdir()]
    ['index.json']
    """
    with explained(folder):
        refuse_strangers(folder, parts, what)
        target = folder.resolve()
        draft = target.with_name(f".{target.name}.{os.getpid()}.partial")
        shutil.rmtree(draft, ignore_errors=True)
        try:
            draft.mkdir(parents=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UserError(f"{folder}: a file stands where a folder is needed; name another folder") from error
        try:
            yield draft
            for file in draft.rglob("*"):
                if file.is_file():
                    with file.open("rb+") as written:
                        os.fsync(written.fileno())
            _swap(draft, target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def refuse_strangers(folder: Path, parts: Collection[str], what: str) -> None:
    """Refuse a place that holds anything else than what is to be replaced; see :func:`replacing_folder`.

    Raises:
        UserError: If a file stands there, or a folder with a file that is none of ``parts``.

    >>> refuse_strangers(Path("no such place"), {"index.json"}, "an index")
    """
    with explained(folder):
        if not folder.exists():
            return
        if not folder.is_dir():
            raise UserError(f"{folder}: a file stands here; name a folder for {what}")
        if strangers := sorted({file.name for file in folder.iterdir()} - set(parts) - DROPPINGS):
            raise UserError(f"{folder}: holds {strangers[0]!r}, which is no part of {what}; name a new or empty folder")


def _swap(draft: Path, target: Path) -> None:
    if not target.exists():
        draft.rename(target)
        return
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    target.rename(old)
    try:
        draft.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
