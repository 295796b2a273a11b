"""The place of a LanceDB table, and which of its versions counts.

LanceDB makes a new version in one step, but it waits for no disk: after a power cut a version may be there whose files
are not. So a table in a folder has ``rungwise.json`` beside its files, which names the version that counts. It is
replaced, in one step, once all files of the version are on the disk. Whatever LanceDB wrote later was never
acknowledged: readers do not see it, and the next process that writes removes it. Object stores keep what they have
acknowledged, so that there the newest version counts.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from rungwise.core import MissingFileError, UserError, read_bytes
from rungwise.core.compute import ran_out, remedy, startable
from rungwise.core.disk import digest_of, explained, make_folder, staging, sync_file, sync_folder
from rungwise.core.disk.locks import writing_alone
from rungwise.core.network import address_of
from rungwise.index.stores._vector_files import altered, damaged, read_description, write_description

if TYPE_CHECKING:
    from lancedb.db import DBConnection
    from lancedb.table import Table

COUNTS = "rungwise.json"
MARK = "rungwise"
"""Key of the metadata by which the schema of a table of ours describes it."""
FORMAT, VERSION = "rungwise-lance-store", 1
FILES = (COUNTS, "data/*.lance", "_versions/*", "_transactions/*.txn", "_deletions/*", "_indices/*/*")
"""Files of a table's folder."""

_ATTEMPTS = 8
_PAUSE = 0.02
_LAST_VERSION = 2**64 - 1
_MANIFEST = re.compile(r"(\d{20})\.manifest")
_VERSIONS = "_versions"
_THREADS = 12
"""Threads of the engine where it is told to take one of each kind, and a few that it starts as it needs them."""
_ONE_LINE = 200
_T = TypeVar("_T")


class Tables:
    """A table of a LanceDB database, opened at the version that counts.

    Args:
        place: Folder of the database, or its address in an object store (``s3://bucket/prefix``), whose credentials and
            endpoint are taken from the environment.
        name: Name of the table.

    Attributes:
        label: Name of the table in messages.
        folder: Folder of the table's files; None in an object store.
    """

    def __init__(self, place: Path | str, name: str) -> None:
        address = address_of(place)
        self.place, self.name = address or place, name
        self.label = f"{self.place}/{name}.lance"
        self.folder = None if address else Path(place) / f"{name}.lance"
        self._database: DBConnection | None = None
        self._synced: set[Path] | None = None
        self._known_digests: dict[str, str] = {}

    def create(self, schema: Any, prepare: Callable[[Table], None]) -> None:
        """Make an empty table with a schema of Arrow; ``prepare`` changes it before it counts.

        Refuses where a table stands, of ours or of somebody else.
        """
        taken = UserError(f"{self.label}: a store stands here already; open it, or choose another place")
        if self.folder is None:
            with self.errors_in_one_line():
                try:
                    table = self._connected().create_table(self.name, schema=schema)
                except ValueError as error:
                    raise (taken if "already exists" in str(error) else error) from None
                prepare(table)
            return
        if (self.folder / COUNTS).exists():
            raise taken
        with explained(self.folder):
            make_folder(self.folder.parent)
        with self.writing_alone(), self.errors_in_one_line():
            # Files of ours without rungwise.json were left by one who died while making a store.
            self._refuse_others()
            table = self._connected().create_table(self.name, schema=schema, mode="overwrite")
            prepare(table)
            self.acknowledge(table)

    def drop(self) -> None:
        """Remove a table of ours from an object store, if there is one; refuses somebody else's."""
        with self.errors_in_one_line():
            self._refuse_others()
            database: Any = self._connected()
            database.drop_table(self.name, ignore_missing=True)

    def reading(self) -> Table:
        """Open the table at the version that counts, at which it stays; refuses a missing or damaged one."""
        with self.errors_in_one_line():
            if self.folder is None:
                table = self._connected().open_table(self.name)
                table.checkout(table.version)
                return table
            version = self._acknowledged()  # before connecting, which makes the folder
            try:
                return self._connected().open_table(self.name, version=version)
            except Exception:
                # LanceDB looks at the newest version first, which a power cut may have left in pieces.
                with self.writing_alone():
                    if not self._drop_unacknowledged(self.folder):
                        raise
                return self._connected().open_table(self.name, version=self._acknowledged())

    def writing(self) -> Table:
        """Open the table at the version that counts, to be changed within :meth:`writing_alone`."""
        with self.errors_in_one_line():
            if self.folder is not None:
                self._drop_unacknowledged(self.folder)
            return self._connected().open_table(self.name)

    def version(self) -> int:
        """Number of the version that counts now."""
        if self.folder is not None:
            return self._acknowledged()
        with self.errors_in_one_line():
            return int(self._connected().open_table(self.name).version)

    def writing_alone(self) -> AbstractContextManager[None]:
        """Take the lock of those of rungwise that write; in an object store, LanceDB finds out who was first."""
        return nullcontext() if self.folder is None else writing_alone(self.folder)

    def acknowledge(self, table: Table) -> None:
        """Make the version of a table the one that counts, once it is on the disk."""
        if self.folder is None:
            return
        version = int(table.version)
        with explained(self.folder):
            self._sync(self.folder)
            manifest = self._manifest(version).read_bytes()
            write_description(
                self.folder / COUNTS,
                {
                    "format": FORMAT,
                    "version": VERSION,
                    "counts": version,
                    "files": self._digests(self.folder, manifest),
                },
            )

    def verified_files(self) -> str:
        """Compare every file of the version that counts, and the lists of earlier ones, with its checksum."""
        assert self.folder is not None
        while True:
            stored = self._description(self.folder)
            try:
                return self._compared(self.folder, stored)
            except UserError:
                # Another process may have gone on to a later version and removed files of this one.
                if self._description(self.folder) == stored:
                    raise

    def retried(
        self,
        change: Callable[[], _T],
        table: Table | None = None,
        *,
        pause: Callable[[float], object] = time.sleep,
    ) -> _T:
        """Result of a change that is tried again while others' commits come in between.

        Args:
            change: Makes the change.
            table: Table that is changed, brought to the newest version before another try; if None, LanceDB finds out
                for itself what has come in between.
            pause: Waits the given seconds between two tries.
        """
        for attempt in range(_ATTEMPTS):
            try:
                with self.errors_in_one_line(writing=True):
                    return change()
            except _ConflictError:
                if attempt == _ATTEMPTS - 1:
                    raise
                pause(_PAUSE * 2**attempt * random.random())  # or two writers would meet again and again
                if table is not None:
                    with self.errors_in_one_line():
                        table.checkout_latest()  # type: ignore[no-untyped-call]
        raise AssertionError("unreachable")

    @contextmanager
    def errors_in_one_line(self, *, writing: bool = False) -> Iterator[None]:
        """Turn the errors of LanceDB and the system, and panics, into a UserError of one line that names the place."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            raise self._said(error, writing) from error
        except BaseException as error:
            # Rust code that panics on damaged files is no Exception in Python.
            if type(error).__name__ != "PanicException":
                raise
            raise self._said(error, writing) from None

    def close(self) -> None:
        """Let go of the database."""
        self._database = None

    def _connected(self) -> DBConnection:
        if self._database is None:
            self._database = connected(self.place)
        return self._database

    def _refuse_others(self) -> None:
        """Refuse a table that does not carry our mark, or that is too damaged to tell."""
        try:
            metadata = self._connected().open_table(self.name).schema.metadata or {}
        except ValueError as error:
            if "not found" not in str(error):
                raise
            return
        except RuntimeError as error:
            if self.folder is None or ran_out(error):
                raise  # the object store may have refused
            raise UserError(
                f"{self.label}: a table that cannot be read stands here; remove it, or choose another place"
            ) from error
        if MARK.encode() not in metadata:
            raise UserError(f"{self.label}: a table of somebody else stands here; choose another place")

    def _digests(self, folder: Path, manifest: bytes) -> dict[str, str]:
        """SHA-256 of each file of a version, and of the lists of earlier ones, by its name.

        LanceDB never changes a file that it has written, so that digests of an earlier version are taken over.
        """
        known = self._known_digests
        if not known and (folder / COUNTS).exists():
            known = _files_of(self._description(folder), folder / COUNTS)
        found = {}
        for one in _files_below(folder):
            name = Path(one.path).relative_to(folder).as_posix()
            if _version_of(Path(name).name) or _is_named(name, manifest):
                found[name] = known.get(name) or digest_of(folder / name)
        self._known_digests = found
        return found

    def _compared(self, folder: Path, stored: dict[str, Any]) -> str:
        self._acknowledged()
        digests = _files_of(stored, folder / COUNTS)
        manifest = read_bytes(self._manifest(stored["counts"]), "json_bytes")
        for name, digest in digests.items():
            try:
                found = digest_of(folder / name)
            except MissingFileError:
                if _is_named(name, manifest):
                    raise damaged(folder / name, "the file is missing") from None
                continue  # the list of an earlier version, which a compaction has removed
            if found != digest:
                raise altered(folder / name)
        return f"{COUNTS} and {len(digests)} files of LanceDB, its indexes among them, each as it was written"

    def _description(self, folder: Path) -> dict[str, Any]:
        """Read ``rungwise.json``."""
        try:
            return read_description(folder / COUNTS, FORMAT, VERSION)
        except MissingFileError:
            raise UserError(
                f"{self.label}: no store here; build the index with Index.build or `rungwise index`"
            ) from None

    def _acknowledged(self) -> int:
        assert self.folder is not None
        path = self.folder / COUNTS
        stored = self._description(self.folder)
        version, digests = stored.get("counts"), _files_of(stored, path)
        if not isinstance(version, int) or not 0 < version < _LAST_VERSION:
            raise damaged(path, "it names no version")
        manifest = self._manifest(version)
        try:
            found = digest_of(manifest)
        except MissingFileError:
            # Another process may have gone on to a later version and cleared this one away.
            if read_description(path, FORMAT, VERSION) != stored:
                return self._acknowledged()
            raise damaged(manifest, "the file is missing") from None
        if found != digests.get(manifest.relative_to(self.folder).as_posix()):
            raise damaged(manifest, "it is not the file that was written")
        return version

    def _manifest(self, version: int) -> Path:
        assert self.folder is not None
        return self.folder / _VERSIONS / f"{_LAST_VERSION - version:020}.manifest"

    def _drop_unacknowledged(self, folder: Path) -> bool:
        """Remove versions that never counted; gives whether there were any."""
        counts = self._acknowledged()
        staging.sweep(folder / COUNTS)
        later = [one for one in _entries(folder / _VERSIONS) if _version_of(one.name) > counts]
        if later:
            for one in sorted(later, key=lambda one: _version_of(one.name), reverse=True):
                Path(one.path).unlink()
            sync_folder(folder / _VERSIONS)
            # What was read of those versions must not be taken for later ones of the same number.
            self._database = None
        return bool(later)

    def _sync(self, folder: Path) -> None:
        """Bring the files that LanceDB has written since the last time to the disk."""
        known = self._synced or set()
        found = {Path(one.path) for one in _files_below(folder)}
        new = found - known
        for path in sorted(new):
            sync_file(path)
        for one in sorted({folder, *(path.parent for path in new), *(path.parent.parent for path in new)}):
            sync_folder(one)
        self._synced = found

    def _said(self, error: BaseException, writing: bool) -> UserError:
        line = " ".join(str(error).split())
        lower = line.lower()
        if "no space left" in lower or "os error 28" in lower or "quota" in lower:
            return UserError(f"{self.label}: the disk is full; free some space or choose another place, then run again")
        if any(sign in lower for sign in ("permission denied", "os error 13", "read-only file system", "os error 30")):
            return UserError(
                f"{self.label}: may not be written or read; choose another place or change its permissions"
            )
        if "file too large" in lower or "os error 27" in lower:
            return UserError(f"{self.label}: a file would be larger than this place takes; choose another place")
        if "input/output error" in lower or "os error 5)" in lower:
            return UserError(f"{self.label}: the disk fails (input/output error); choose another place")
        if "too many open files" in lower or "os error 24" in lower:
            return UserError(f"{self.label}: too many open files; raise the limit of the system (ulimit -n)")
        if "conflict" in lower or "concurrent" in lower:
            return _ConflictError(f"{self.label}: others keep writing here; try again when they have finished")
        shortened = line if len(line) <= _ONE_LINE else f"{line[:_ONE_LINE]}..."
        if self.folder is None:
            return UserError(f"{self.label}: {shortened}; check the address, the credentials and the store's state")
        if writing:
            return UserError(f"{self.label}: could not be written ({shortened}); what stood there before still counts")
        return damaged(self.label, shortened)


class _ConflictError(UserError):
    """Somebody else's commit came first."""


def connected(place: Path | str) -> DBConnection:
    """Connect to a LanceDB database; refuses where LanceDB is not installed, or the system starts too few threads."""
    _require_threads()
    # LanceDB would warn on the error stream that it makes a table where none was; it reads this when it is loaded.
    os.environ.setdefault("LANCEDB_LOG", "error")
    try:
        import lancedb
    except ImportError as error:
        raise UserError(
            f"{place}: kept by LanceDB, which is not installed ({error}); install it with `pip install lancedb`"
        ) from error
    return lancedb.connect(str(place))


def _require_threads() -> None:
    """Refuse to begin where the engine would wait without end for a thread that does not start."""
    if (begun := _startable()) < _THREADS:
        raise UserError(
            f"out of memory: LanceDB needs {_THREADS} threads, and the system starts {begun};"
            f" {remedy('start new thread')}"
        )


@cache
def _startable() -> int:
    """Number of threads that the system starts, asked once: the engine keeps the threads that it has started."""
    return startable(_THREADS)


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


def _is_named(name: str, manifest: bytes) -> bool:
    """Whether the list of a version names a file.

    It names data files and transactions as they are called, indexes by the 16 bytes of their UUID, and the deletions of
    a fragment by their number, which is drawn at random from 64 bits.
    """
    folder, _, rest = name.partition("/")
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
