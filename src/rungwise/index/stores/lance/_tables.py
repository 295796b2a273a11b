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
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rungwise.core import MissingExtraError, UserError
from rungwise.core.compute import ran_out, remedy, startable
from rungwise.core.disk import explained, make_folder
from rungwise.core.disk.locks import writing_alone
from rungwise.core.network import address_of
from rungwise.index.stores._vector_files import damaged
from rungwise.index.stores.lance._version_file import Counting, VersionFile

if TYPE_CHECKING:
    from lancedb.db import DBConnection
    from lancedb.table import Table

MARK = "rungwise"
"""Key of the metadata by which the schema of a table of ours describes it."""

_ATTEMPTS = 8
_PAUSE = 0.02
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
        self._version_file = None if self.folder is None else VersionFile(self.folder, self.label)

    def create(self, schema: Any, prepare: Callable[[Table], None]) -> None:
        """Make an empty table with a schema of Arrow; ``prepare`` changes it before it counts.

        Refuses where a table stands, of ours or of somebody else.
        """
        taken = UserError(f"{self.label}: a store stands here already; open it, or choose another place")
        if (file := self._version_file) is None:
            with self.errors_in_one_line():
                try:
                    table = self._connected().create_table(self.name, schema=schema)
                except ValueError as error:
                    raise (taken if "already exists" in str(error) else error) from None
                prepare(table)
            return
        if file.exists():
            raise taken
        with explained(file.folder):
            make_folder(file.folder.parent)
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
            if self._version_file is None:
                table = self._connected().open_table(self.name)
                table.checkout(table.version)
                return table
            version = self._version_file.counting().version  # before connecting, which makes the folder
            try:
                return self._connected().open_table(self.name, version=version)
            except Exception:
                # LanceDB looks at the newest version first, which a power cut may have left in pieces.
                with self.writing_alone():
                    if not self._drop_unacknowledged():
                        raise
                return self._connected().open_table(self.name, version=self._version_file.counting().version)

    def writing(self) -> Table:
        """Open the table at the version that counts, to be changed within :meth:`writing_alone`."""
        with self.errors_in_one_line():
            self._drop_unacknowledged()
            return self._connected().open_table(self.name)

    def counting(self) -> Counting:
        """The version and the mapped files that count now."""
        if self._version_file is not None:
            return self._version_file.counting()
        with self.errors_in_one_line():
            return Counting(int(self._connected().open_table(self.name).version))

    def mapped_folder(self, name: str | None) -> Path | None:
        """Folder of mapped files by its name; None without one, and in an object store."""
        return None if name is None or self._version_file is None else self._version_file.mapped_folder(name)

    def mapped_is_whole(self) -> bool:
        """Whether each file of the mapped files that count is as it was written; it is read for this."""
        return self._version_file is not None and self._version_file.mapped_is_whole()

    def drop_mapped(self, older_than: timedelta) -> None:
        """Remove the folders of mapped files that do not count, once they are older."""
        if self._version_file is not None:
            self._version_file.drop_mapped(older_than)

    def writing_alone(self) -> AbstractContextManager[None]:
        """Take the lock of those of rungwise that write; in an object store, LanceDB finds out who was first."""
        return nullcontext() if self.folder is None else writing_alone(self.folder)

    def acknowledge(self, table: Table, mapped: str | None = None) -> None:
        """Make the version of a table, with mapped files by name, the one that counts, once it is on the disk."""
        if self._version_file is not None:
            self._version_file.acknowledge(Counting(int(table.version), mapped))

    def verified_files(self) -> str | None:
        """Compare every file with its checksum; None in an object store, where LanceDB keeps none."""
        return None if self._version_file is None else self._version_file.verified()

    def sizes(self) -> tuple[int, int, int] | None:
        """Bytes of rows, of indexes and of earlier versions; None in an object store."""
        if self._version_file is None:
            return None
        with explained(self._version_file.folder):
            return self._version_file.sizes()

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

    def _drop_unacknowledged(self) -> bool:
        """Remove versions that never counted; gives whether there were any."""
        dropped = self._version_file is not None and self._version_file.drop_later()
        if dropped:
            # What was read of those versions must not be taken for later ones of the same number.
            self._database = None
        return dropped

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
        raise MissingExtraError("lancedb", f"{place}: an index") from error
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
