"""Seals: a folder records the SHA-256 of every file in it, so that a file that was altered or damaged is found.

The seal is a file ``SHA256SUMS`` in the format of the coreutils: ``sha256sum -c SHA256SUMS`` checks it as well. It
detects damage and accidental changes. Who may write the folder may also write its seal: it proves no author.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from rungwise.core._errors import UserError
from rungwise.core._limits import LimitName
from rungwise.core._untrusted_files import MissingFileError, opened_file, read_text
from rungwise.core.disk._files import replacing
from rungwise.core.disk._mount_points import LOST_AND_FOUND, is_mount_point
from rungwise.core.disk.locks import LOCKS
from rungwise.core.disk.staging import is_draft

SEAL = "SHA256SUMS"
DROPPINGS = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
"""Files that file managers leave in folders."""

_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def write_seal(folder: Path) -> None:
    r"""Write the seal of all files in a folder and below.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("a")
    >>> write_seal(folder)
    >>> check_seal(folder)
    >>> _ = (folder / "a.txt").write_text("b")
    >>> check_seal(folder)
    Traceback (most recent call last):
    rungwise.core.UserError: ...a.txt: altered or damaged since it was written (SHA256SUMS says otherwise)...
    """
    names = sorted(name for name in names_below(folder) if name != SEAL)
    lines = "".join(f"{digest_of(folder / name)}  {name}\n" for name in names)
    (folder / SEAL).write_text(lines, encoding="utf-8", newline="\n")


def has_seal(folder: Path) -> bool:
    """Whether a folder has a seal, be it sound or not."""
    return (folder / SEAL).is_file()


def read_seal(folder: Path) -> dict[str, str]:
    """SHA-256 by the name of each file, relative to the folder, with ``/`` between its parts.

    Raises:
        UserError: If the seal is missing or damaged, or names a file outside of the folder.
    """
    path = folder / SEAL
    try:
        text = read_text(path, "json_bytes")
    except MissingFileError:
        raise UserError(f"{path}: missing, so nobody knows whether the folder is whole; make the folder anew") from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in found or not _is_inside(match[2]):
            raise UserError(f"{path}, line {number}: damaged; make the folder anew")
        found[match[2]] = match[1]
    return found


def add_to_seal(folder: Path, name: str) -> None:
    """Record a file of a folder in its seal, new or as it is now; ``name`` is relative to the folder.

    Raises:
        UserError: If the seal is missing or damaged, or the folder may not be written.
    """
    sealed = {**read_seal(folder), name: digest_of(folder / name)}
    with replacing(folder / SEAL) as draft:
        lines = "".join(f"{sealed[one]}  {one}\n" for one in sorted(sealed))
        draft.write_text(lines, encoding="utf-8", newline="\n")


def check_seal(folder: Path, names: Collection[str] | None = None) -> None:
    """Compare the files of a folder with its seal.

    Args:
        folder: Folder with a seal.
        names: Files whose content is compared, such as the small ones; None compares all. Names of files are always
            compared.

    Raises:
        UserError: Naming the first file that is altered, missing, or not in the seal.
    """
    sealed = read_seal(folder)
    there = {name for name in names_below(folder) if name != SEAL}
    if missing := sorted(sealed.keys() - there):
        raise UserError(f"{folder / missing[0]}: missing; {_REMEDY}")
    if more := sorted(there - sealed.keys()):
        raise UserError(f"{folder / more[0]}: was put here after the folder was written; remove it, or {_REMEDY}")
    for name in sorted(sealed if names is None else sealed.keys() & set(names)):
        if digest_of(folder / name) != sealed[name]:
            raise altered(folder / name)


_REMEDY = "restore it from a copy, or make the folder anew"


def altered(path: Path) -> UserError:
    """The error of a file that does not match its seal."""
    return UserError(f"{path}: altered or damaged since it was written ({SEAL} says otherwise); {_REMEDY}")


def digest_of(path: Path, limit: LimitName | None = None) -> str:
    """SHA-256 of a file as 64 hexadecimal digits; limit and errors as in ``opened_file``."""
    with opened_file(path, limit) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def names_below(folder: Path) -> Iterator[str]:
    """Files in a folder and below, relative to it, without locks, drafts and what systems and file managers leave.

    Links to folders are not followed: they count as files, which nothing of ours is.
    """
    for place, subfolders, files in os.walk(folder):
        inner = Path(place).relative_to(folder)
        links = [name for name in subfolders if (Path(place) / name).is_symlink()]
        subfolders[:] = sorted(name for name in subfolders if name not in links and not is_draft(name))
        if LOST_AND_FOUND in subfolders and is_mount_point(Path(place)):
            subfolders.remove(LOST_AND_FOUND)
        for name in sorted((*files, *links)):
            if name not in DROPPINGS and name not in LOCKS:
                yield (inner / name).as_posix()


def _is_inside(name: str) -> bool:
    parts = name.split("/")
    return not name.startswith("/") and not {"", ".", ".."} & set(parts) and "\\" not in name and "\0" not in name
