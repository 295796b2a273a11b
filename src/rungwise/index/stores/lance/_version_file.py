"""The file ``rungwise.json`` beside the files of a LanceDB table: which version counts, and checksums of its files.

It also names the folder of mapped files that counts (:mod:`rungwise.index.stores.lance.mapped`).
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from rungwise.core import MissingFileError, UserError, read_bytes
from rungwise.core.disk import digest_of, explained, staging, sync_file, sync_folder
from rungwise.index.stores._vector_files import altered, damaged, read_description, write_description

COUNTS = "rungwise.json"
FORMAT, VERSION = "rungwise-lance-store", 1
MAPPED = "rungwise.mapped"
"""Folder, in that of a table, of the folders of mapped files."""
FILES = (COUNTS, "data/*.lance", "_versions/*", "_transactions/*.txn", "_deletions/*", "_indices/*/*", f"{MAPPED}/*/*")
"""Files of a table's folder."""


_LAST_VERSION = 2**64 - 1
_MANIFEST = re.compile(r"(\d{20})\.manifest")
_VERSIONS = "_versions"
_MAPPED_NAME = re.compile(r"[0-9a-f]{32}")


class Counting(NamedTuple):
    """What counts: the number of a version, and the name of a folder of mapped files, None without one."""

    version: int
    mapped: str | None = None


class VersionFile:
    """The file that names the version of a table which counts.

    Args:
        folder: Folder of the table's files.
        label: Name of the table in messages.
    """

    def __init__(self, folder: Path, label: str) -> None:
        self.folder, self._label = folder, label
        self._path = folder / COUNTS
        self._synced: set[Path] = set()
        self._known_digests: dict[str, str] = {}

    def exists(self) -> bool:
        """Whether a version has ever counted."""
        return self._path.exists()

    def counting(self) -> Counting:
        """The version and the mapped files that count; refuses a missing or damaged version."""
        stored = self._read()
        version, digests = stored.get("counts"), _files_of(stored, self._path)
        if not isinstance(version, int) or not 0 < version < _LAST_VERSION:
            raise damaged(self._path, "it names no version")
        manifest = self._manifest(version)
        try:
            found = digest_of(manifest)
        except MissingFileError:
            # Another process may have gone on to a later version and cleared this one away.
            if read_description(self._path, FORMAT, VERSION) != stored:
                return self.counting()
            raise damaged(manifest, "the file is missing") from None
        if found != digests.get(manifest.relative_to(self.folder).as_posix()):
            raise damaged(manifest, "it is not the file that was written")
        return Counting(version, _mapped_of(stored, self._path))

    def acknowledge(self, counting: Counting) -> None:
        """Make a version and mapped files those that count, once they are on the disk."""
        with explained(self.folder):
            self._sync()
            fields = {
                "format": FORMAT,
                "version": VERSION,
                "counts": counting.version,
                "files": self._digests(counting),
            }
            write_description(self._path, fields if counting.mapped is None else {**fields, "mapped": counting.mapped})

    def mapped_folder(self, name: str) -> Path:
        """Folder of mapped files by its name."""
        return self.folder / MAPPED / name

    def mapped_is_whole(self) -> bool:
        """Whether each file of the mapped files that count is as it was written; it is read for this."""
        stored = self._read()
        own = f"{MAPPED}/{_mapped_of(stored, self._path)}/"
        digests = {name: one for name, one in _files_of(stored, self._path).items() if name.startswith(own)}
        try:
            return bool(digests) and all(digest_of(self.folder / name) == one for name, one in digests.items())
        except UserError:
            return False

    def drop_mapped(self, older_than: timedelta) -> None:
        """Remove the folders of mapped files that do not count, once they are older; readers may have them open."""
        kept, now = self.counting().mapped, time.time()
        for one in _entries(self.folder / MAPPED):
            if one.name != kept and now - one.stat(follow_symlinks=False).st_mtime >= older_than.total_seconds():
                shutil.rmtree(one.path, ignore_errors=True)  # a system may refuse while readers have it open

    def drop_later(self) -> bool:
        """Remove versions that never counted; gives whether there were any."""
        counts = self.counting().version
        staging.sweep(self._path)
        later = [one for one in _entries(self.folder / _VERSIONS) if _version_of(one.name) > counts]
        for one in sorted(later, key=lambda one: _version_of(one.name), reverse=True):
            Path(one.path).unlink()
        if later:
            sync_folder(self.folder / _VERSIONS)
        return bool(later)

    def sizes(self) -> tuple[int, int, int]:
        """Bytes of the files of the version that counts: of its rows and of its indexes; and of all others."""
        counting = self.counting()
        current = self._manifest(counting.version)
        named = current.read_bytes()
        rows = indexes = earlier = 0
        for one in _files_below(self.folder):
            name, size = Path(one.path).relative_to(self.folder).as_posix(), one.stat().st_size
            # Beside its lists of files, LanceDB keeps a hint of the newest there.
            of_the_table = name == COUNTS or (name.startswith(f"{_VERSIONS}/") and not _version_of(Path(name).name))
            if not (of_the_table or self.folder / name == current or _is_named(name, named, counting.mapped)):
                earlier += size
            elif name.startswith(("_indices/", f"{MAPPED}/")):
                indexes += size
            else:
                rows += size
        return rows, indexes, earlier

    def verified(self) -> str:
        """Compare every file of the version that counts, and the lists of earlier ones, with its checksum."""
        while True:
            stored = self._read()
            try:
                return self._compared(stored)
            except UserError:
                # Another process may have gone on to a later version and removed files of this one.
                if self._read() == stored:
                    raise

    def _read(self) -> dict[str, Any]:
        try:
            return read_description(self._path, FORMAT, VERSION)
        except MissingFileError:
            raise UserError(
                f"{self._label}: no store here; build the index with Index.build or `rungwise index`"
            ) from None

    def _compared(self, stored: dict[str, Any]) -> str:
        counting, digests = self.counting(), _files_of(stored, self._path)
        manifest = read_bytes(self._manifest(stored["counts"]), "json_bytes")
        for name, digest in digests.items():
            try:
                found = digest_of(self.folder / name)
            except MissingFileError:
                if _is_named(name, manifest, counting.mapped):
                    raise damaged(self.folder / name, "the file is missing") from None
                continue  # the list of an earlier version, which a compaction has removed
            if found != digest:
                raise altered(self.folder / name)
        return f"{COUNTS} and {len(digests)} files of LanceDB, its indexes among them, each as it was written"

    def _digests(self, counting: Counting) -> dict[str, str]:
        """SHA-256 of each file of a version and its mapped files, and of the manifests of earlier ones, by its name.

        LanceDB never changes a file that it has written, so that digests of an earlier version are taken over.
        """
        manifest, known = self._manifest(counting.version).read_bytes(), self._known_digests
        if not known and self.exists():
            known = _files_of(self._read(), self._path)
        found = {}
        for one in _files_below(self.folder):
            name = Path(one.path).relative_to(self.folder).as_posix()
            if _version_of(Path(name).name) or _is_named(name, manifest, counting.mapped):
                found[name] = known.get(name) or digest_of(self.folder / name)
        self._known_digests = found
        return found

    def _manifest(self, version: int) -> Path:
        """LanceDB's list of the files of a version."""
        return self.folder / _VERSIONS / f"{_LAST_VERSION - version:020}.manifest"

    def _sync(self) -> None:
        """Bring the files that LanceDB has written since the last time to the disk."""
        found = {Path(one.path) for one in _files_below(self.folder)}
        new = found - self._synced
        for path in sorted(new):
            sync_file(path)
        for one in sorted({self.folder, *(path.parent for path in new), *(path.parent.parent for path in new)}):
            sync_folder(one)
        self._synced = found


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except FileNotFoundError:
        return []


def _files_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    for one in _entries(folder):
        if one.is_dir(follow_symlinks=False):
            yield from _files_below(Path(one.path))
        elif one.is_file(follow_symlinks=False):
            yield one


def _files_of(stored: dict[str, Any], path: Path) -> dict[str, str]:
    """Checksums of files in ``rungwise.json``."""
    digests = stored.get("files")
    if not isinstance(digests, dict) or not all(isinstance(one, str) for one in digests.values()):
        raise damaged(path, "its list of files is none")
    return digests


def _mapped_of(stored: dict[str, Any], path: Path) -> str | None:
    """Name of the folder of mapped files in ``rungwise.json``."""
    name = stored.get("mapped")
    if name is not None and not (isinstance(name, str) and _MAPPED_NAME.fullmatch(name)):
        raise damaged(path, "it names no folder of mapped files")
    return name


def _is_named(name: str, manifest: bytes, mapped: str | None) -> bool:
    """Whether the manifest of a version, or the folder of mapped files that counts, has a file.

    The manifest names data files and transactions as they are called, indexes by the 16 bytes of their UUID, and the
    deletions of a fragment by their number, which is drawn at random from 64 bits.
    """
    folder, _, rest = name.partition("/")
    if folder == MAPPED:
        return rest.split("/")[0] == mapped
    if folder == "_indices":
        try:
            return UUID(rest.split("/")[0]).bytes in manifest
        except ValueError:
            return False
    if folder == "_deletions":
        number = rest.rpartition(".")[0].rpartition("-")[2]
        return number.isdecimal() and _varint(int(number)) in manifest
    return rest != "" and rest.encode() in manifest


def _varint(number: int) -> bytes:
    """A number as protocol buffers write it; 300 is ``ac02``."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _version_of(name: str) -> int:
    found = _MANIFEST.fullmatch(name)
    return _LAST_VERSION - int(found[1]) if found else 0
