"""Parquet files of unknown origin, read in parts: a small file may stand for more rows than any memory holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError, beyond_limit, limits, require_regular
from rungwise.core.network import address_of, file_system

if TYPE_CHECKING:
    import pyarrow

_ROWS = 1024
"""Number of rows that are unpacked at a time."""
_ROW_BYTES = 256
"""Bytes that Python takes for a row of short texts besides these, roughly."""


class Parquet:
    """An open Parquet file, made by :func:`opened_parquet`.

    Args:
        file: File object of pyarrow.
        path: Path for messages.

    Attributes:
        schema: Names and types of the columns.
        group_sizes: Number of rows of each row group.
    """

    def __init__(self, file: Any, path: Path) -> None:
        self._file = file
        self._path = path
        self.schema: pyarrow.Schema = file.schema_arrow
        self.group_sizes = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]

    def batches(self, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        """The rows of some columns, a thousand or so at a time.

        Raises:
            UserError: If a column stands twice, the file is damaged, or it unpacks to more than the limit
                ``unpacked_bytes``.
        """
        for name in columns:
            if self.schema.names.count(name) > 1:
                raise UserError(f"{self._path}: column {name!r} stands twice; rename one")
        unpacked = 0
        with explained(self._path):
            for batch in self._file.iter_batches(batch_size=_ROWS, columns=list(columns)):
                unpacked += batch.nbytes
                if unpacked > limits().unpacked_bytes:
                    raise beyond_limit(f"{self._path}, unpacked", "unpacked_bytes")
                yield batch

    def rows(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The rows of some columns one by one, as Python values.

        Raises:
            UserError: For the reasons of :meth:`batches`, or if the texts of all rows together pass the limit
                ``text_bytes``.
        """
        unpacked = 0
        for batch in self.batches(columns):
            with explained(self._path):
                rows = batch.to_pylist()
            # In Arrow's memory a text that stands a million times may be there once.
            shared = "dictionary<" in str(batch.schema)
            size = sum(_length(cell) for row in rows for cell in row.values()) if shared else batch.nbytes
            unpacked += size + _ROW_BYTES * len(rows)
            if unpacked > limits().text_bytes:
                raise beyond_limit(f"{self._path}, unpacked", "text_bytes")
            yield from rows

    def values(self, column: pyarrow.Array) -> list[Any]:
        """The cells of a column of a batch as Python values."""
        with explained(self._path):
            return list(column.to_pylist())


def _length(cell: object) -> int:
    if isinstance(cell, list | dict):
        return sum(map(_length, cell.values() if isinstance(cell, dict) else cell))
    return len(cell) if isinstance(cell, str | bytes) else 0


@contextmanager
def opened_parquet(path: Path) -> Iterator[Parquet]:
    """A Parquet file, of which only the description is read yet.

    Raises:
        UserError: If it is missing, no regular file, may not be read or is no Parquet.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "captions.parquet"
    >>> import pyarrow, pyarrow.parquet
    >>> pyarrow.parquet.write_table(pyarrow.table({"image": ["a.jpg"], "caption": ["A dog."]}), file)
    >>> with opened_parquet(file) as found:
    ...     found.schema.names, list(found.rows(["caption"]))
    (['image', 'caption'], [{'caption': 'A dog.'}])
    """
    require_regular(path)
    file = parquet_file(path)
    with closing(file):
        with explained(path):
            found = Parquet(file, path)
        yield found


def parquet_file(path: Path, **options: Any) -> Any:
    """The open file of pyarrow, with its options; the caller closes it. A UserError if it is no Parquet file."""
    import pyarrow.parquet

    with explained(path):
        if address := address_of(path):
            options["filesystem"], place = file_system(address)
            return pyarrow.parquet.ParquetFile(place, **options)
        return pyarrow.parquet.ParquetFile(path, **options)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the errors that pyarrow raises for a damaged file into a UserError of one line."""
    import pyarrow

    try:
        yield
    # Damage shows as Arrow's own errors and as OSError; texts that are no UTF-8 and dates beyond the calendar as the
    # others, when values become Python's.
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise UserError(f"{path}: not a readable Parquet file ({reason}); re-create it") from error
