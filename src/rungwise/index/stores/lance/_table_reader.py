"""The version of a LanceDB table from which a store answers, whatever others write meanwhile."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rungwise.core import RungwiseWarning, UserError
from rungwise.index.filters import Where
from rungwise.index.stores._approximation import Approximation
from rungwise.index.stores._base import ROWS_AT_ONCE
from rungwise.index.stores.lance._snapshot import LanceSnapshot
from rungwise.index.stores.lance._table_rows import TableRows
from rungwise.index.stores.lance._tables import Tables
from rungwise.index.stores.lance._version_file import Counting
from rungwise.index.stores.lance.mapped import MappedFiles

if TYPE_CHECKING:
    import pyarrow as pa

_T = TypeVar("_T")


class TableReader:
    """Answers from one version of a table.

    Attributes:
        snapshot: That version; another one only after :meth:`refresh`, or once its files are gone.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.snapshot = self._newest(None)

    def with_approximation(self, settings: Approximation) -> TableReader:
        """Reader of the same version with another setting of its approximate index."""
        other = copy(self)
        other.snapshot = self.snapshot.with_approximation(settings)
        return other

    def refresh(self) -> None:
        """Go on to the newest version that counts, if it is another; rows in memory are taken over."""
        if self.is_behind():
            self.advance()

    def is_behind(self) -> bool:
        """Whether another version counts by now, or other mapped files."""
        return self._tables.counting() != self.snapshot.counting

    def advance(self) -> None:
        """Go on to the newest version, which is known to be another."""
        self.snapshot = self._newest(self.snapshot)

    def answered(self, ask: Callable[[LanceSnapshot], _T]) -> _T:
        """Answer of this version; of the newest one, where another process has removed the files of this one."""
        snapshot = self.snapshot
        try:
            with self._tables.errors_in_one_line():
                return ask(snapshot)
        except UserError:
            if self._tables.counting() == snapshot.counting:
                raise
            self.refresh()
            with self._tables.errors_in_one_line():
                return ask(self.snapshot)

    def in_blocks(
        self, where: Where | None, names: list[str], read: Callable[[TableRows, pa.Table], _T]
    ) -> Iterator[_T]:
        """Results of ``read`` for some thousand rows at a time, in order of rows.

        Args:
            where: Filter of the rows; all if None.
            names: Columns that are read.
            read: Gets the rows of the version, and the columns of some of them.
        """
        rows = self.snapshot.rows
        with self._tables.errors_in_one_line():
            numbers = rows.in_order(where)
        for start in range(0, len(numbers), ROWS_AT_ONCE):
            with self._tables.errors_in_one_line():
                found = read(rows, rows.taken(numbers[start : start + ROWS_AT_ONCE], names))
            yield found

    def _newest(self, before: LanceSnapshot | None) -> LanceSnapshot:
        known = before.files if before is not None else None
        while True:
            # Files may be newer than the version: they know which of their rows are not in it.
            name, table = self._tables.counting().mapped, self._tables.reading()
            files = self._files(self._tables.mapped_folder(name), known)
            # Others may have replaced the files in between, and removed these.
            if files is not None or self._tables.counting().mapped == name:
                break
        with self._tables.errors_in_one_line():
            return LanceSnapshot(table, self._tables.label, Counting(int(table.version), name), before, files)

    def _files(self, folder: Path | None, known: MappedFiles | None) -> MappedFiles | None:
        """The mapped files of a folder; None without one, and where they are damaged: then the table answers."""
        if folder is None:
            return None
        if known is not None and known.folder == folder:
            return known
        try:
            return MappedFiles(folder)
        except UserError as error:
            if folder.exists():
                warnings.warn(f"{error}; until then all rows are asked of the table", RungwiseWarning, stacklevel=2)
            return None
