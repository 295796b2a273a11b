"""A LanceDB table that somebody else made, as a store that is read and never written.

Rows are known by LanceDB's row ids, or by a column of the table. Only what a filter can ask for becomes a record:
texts, numbers, truth values, dates and lists of texts. Vectors of cosines are brought to length 1 when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core import UserError
from rungwise.core.output import one_line
from rungwise.index.filters import Where
from rungwise.index.stores._base import (
    Metric,
    Record,
    Row,
    Store,
    StoreFacts,
    StoreHits,
    Vectors,
    WordHits,
    check_k,
    checked_queries,
)
from rungwise.index.stores.lance._tables import connected
from rungwise.index.stores.lance.foreign._table_filter import is_text, kind_of, literal, quoted, sql_of
from rungwise.similarity import Cosine, Similarity, unit_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import Table

_ROW = "_rowid"
_MORE = 16


class ForeignTable(Store):
    """A table of plain LanceDB in a folder of this machine, opened at its newest version.

    Args:
        address: ``FOLDER/TABLE``.
        vectors: Column of vectors; None where there is one alone.
        ids: Column of ids; None takes LanceDB's row ids.
        similarity: How a query and a row are compared.
        item: Entry of each record with what an index keeps of a picture.

    Attributes:
        nulls: Number of rows without a vector, which are never found.

    Raises:
        UserError: If there is no such table or column, the column holds no vectors, no row has one, or ids are missing
            or stand twice.
    """

    side = "image"

    def __init__(
        self,
        address: str,
        *,
        vectors: str | None = None,
        ids: str | None = None,
        similarity: Similarity | None = None,
        item: Record | None = None,
    ) -> None:
        place = Path(address)
        self.label, self.similarity, self._item = address, similarity or Cosine(), dict(item or {})
        name = place.name.removesuffix(".lance")
        if not place.parent.is_dir():  # connecting would make the folder
            raise UserError(f"{place.parent}: no such folder; write lancedb://FOLDER/TABLE")
        with self._read():
            database = connected(place.parent)
            there = sorted(database.list_tables(limit=1000).tables)
        if name not in there:
            raise UserError(f"{place.parent}: has no table {name!r}; there are: {', '.join(there[:20]) or 'none'}")
        with self._read():
            self._table: Table = database.open_table(name)
            self._table.checkout(self._table.version)
            self._schema = self._table.schema
        self._vectors = self._column_of_vectors(vectors)
        self.dimension = self._schema.field(self._vectors).type.list_size
        if ids is not None and ids not in self._schema.names:
            raise UserError(f"{self.label}: has no column {ids!r} for --id; there are: {_listed(self._schema.names)}")
        self._key = ids or _ROW
        with self._read():
            self._rows = self._table.count_rows(self._present)
            self.nulls = self._table.count_rows() - self._rows
        if not self._rows:
            raise UserError(f"{self.label}: no row has a vector in {self._vectors!r}; name another column: --vectors")
        if ids is not None:
            self._check_ids()

    @property
    def _present(self) -> str:
        return f"{quoted(self._vectors)} is not null"

    def upsert(self, ids: Sequence[str], vectors: ArrayLike, records: Sequence[Record] | None = None) -> None:
        """Refused."""
        self._refuse()

    def delete(self, ids: Sequence[str]) -> int:
        """Refused."""
        self._refuse()

    def search(
        self,
        vectors: ArrayLike,
        k: int = 10,
        where: Where | None = None,
        *,
        metric: Metric | None = None,
        exact: bool = False,
    ) -> StoreHits:
        """The k rows most alike to each query; the engine's index is used where it compares in the same way."""
        queries = checked_queries(vectors, self.dimension, k)
        cosine = (metric or self.similarity.metric) == "cosine"
        wanted = min(self._rows, k + len((where or Where()).without) + _MORE)
        ids, scores = [], []
        for query in queries:
            with self._read():
                asked: Any = self._table.search(query, vector_column_name=self._vectors)
                asked = asked.distance_type("cosine" if cosine else "dot").limit(wanted).with_row_id(True)
                asked = asked.where(self._filter(where)).select([*self._keys, self._vectors])
                if exact or not self._index_compares(cosine):
                    asked = asked.bypass_vector_index()
                found = asked.to_arrow()
            rows = self._matrix(found)
            product = unit_rows(rows) @ unit_rows(query[None])[0] if cosine else rows @ query
            of_query = product.astype(np.float32)
            if metric is None:
                of_query = self.similarity.of_metric(of_query)
            keys = self._ids(found)
            without = (where or Where()).without
            order = [
                at
                for at in np.argsort(-of_query, kind="stable").tolist()
                if np.isfinite(of_query[at]) and keys[at] not in without
            ][:k]
            ids.append(tuple(keys[at] for at in order))
            scores.append(of_query[order])
        return StoreHits(tuple(ids), tuple(scores))

    def get(self, ids: Sequence[str]) -> dict[str, Row]:
        """The rows with these ids that have a vector."""
        if not ids:
            return {}
        found: dict[str, Row] = {}
        number = self._key == _ROW or not is_text(self._schema.field(self._key).type)
        wanted = [one for one in ids if not number or (one.isascii() and one.lstrip("-").isdecimal())]
        for start in range(0, len(wanted), 500):
            some = ", ".join(one if number else literal(one) for one in wanted[start : start + 500])
            with self._read():
                asked: Any = self._table.search().with_row_id(True).limit(self._rows)
                asked = asked.where(f"{quoted(self._key)} in ({some}) and {self._present}")
                batch = asked.select([*self._keys, self._vectors, *self._readable]).to_arrow()
            vectors = self._matrix(batch)
            vectors = unit_rows(vectors) if self.similarity.metric == "cosine" else vectors
            for one, vector, record in zip(self._ids(batch), vectors, self._records(batch), strict=True):
                found[one] = Row(vector, record)
        return {one: found[one] for one in ids if one in found}

    def count(self, where: Where | None = None) -> int:
        """Number of rows with a vector, or of those that fulfil ``where``."""
        if where is None:
            return self._rows
        with self._read():
            return int(self._table.count_rows(self._filter(where)))

    def records(self, where: Where | None = None) -> Iterator[tuple[str, Record]]:
        """Id and record of every row with a vector, in the order of the table."""
        for batch in self._batches([*self._keys, *self._readable], where):
            yield from zip(self._ids(batch), self._records(batch), strict=True)

    def ids(self) -> Iterator[str]:
        """Ids of all rows with a vector."""
        for batch in self._batches(self._keys, None):
            yield from self._ids(batch)

    def find_words(self, words: str, k: int = 10, where: Where | None = None) -> WordHits:
        """None: the texts of the table are not searched."""
        check_k(k)
        return WordHits(((),), (np.empty(0, np.float32),), ())

    def about(self) -> StoreFacts:
        """Describe the engine for people."""
        exact = not (self._index_compares(True) or self._index_compares(False))
        return StoreFacts("lancedb", exact, "a table of LanceDB that somebody else made")

    @property
    def _keys(self) -> list[str]:
        return [self._key]

    @property
    def _readable(self) -> list[str]:
        return [one.name for one in self._schema if kind_of(one.type) and one.name != self._key]

    def _index_compares(self, cosine: bool) -> bool:
        with self._read():
            for one in self._table.list_indices():
                if list(one.columns) == [self._vectors]:
                    about = self._table.index_stats(one.name)
                    return bool(about is not None and about.distance_type == ("cosine" if cosine else "dot"))
        return False

    def _batches(self, columns: list[str], where: Where | None) -> Iterator[pa.Table]:
        import pyarrow as pa

        with self._read():
            asked: Any = self._table.search().with_row_id(True).limit(self._rows).where(self._filter(where))
            for batch in asked.select(columns).to_batches():
                yield pa.Table.from_batches([batch])

    def _filter(self, where: Where | None) -> str:
        return " and ".join([self._present, *(sql_of(one, self._schema) for one in (where or Where()).conditions)])

    def _ids(self, rows: pa.Table) -> list[str]:
        return [str(one) for one in rows[self._key].to_pylist()]

    def _records(self, rows: pa.Table) -> list[Record]:
        columns = {name: rows[name].to_pylist() for name in self._readable if name in rows.column_names}
        found: list[Record] = []
        for at in range(rows.num_rows):
            record: dict[str, Any] = {n: _plain(some[at]) for n, some in columns.items() if some[at] is not None}
            found.append({**record, **self._item})
        return found

    def _matrix(self, rows: pa.Table) -> Vectors:
        """(rows, D) float32 vectors."""
        column = rows[self._vectors].combine_chunks()
        flat = column.flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat, np.float32).reshape(rows.num_rows, self.dimension)

    def _column_of_vectors(self, asked: str | None) -> str:
        import pyarrow as pa

        def holds(type_: Any) -> bool:
            return bool(pa.types.is_fixed_size_list(type_) and pa.types.is_floating(type_.value_type))

        there = [one.name for one in self._schema if holds(one.type)]
        if asked is not None and asked not in there:
            type_ = self._schema.field(asked).type if asked in self._schema.names else None
            wrong = "no such column" if type_ is None else f"a column of {one_line(str(type_), 60)}"
            raise UserError(
                f"{self.label}: {asked!r} is {wrong}, not of float vectors of one length; there are: {_listed(there)}"
            )
        if asked is None and len(there) != 1:
            remedy = (
                f"name one with --vectors, such as {there[0]}" if there else "search needs a column of float vectors"
            )
            raise UserError(f"{self.label}: columns of vectors: {_listed(there)}; {remedy}")
        return asked or there[0]

    def _check_ids(self) -> None:
        kind = kind_of(self._schema.field(self._key).type)
        if kind not in ("text", "number"):
            raise UserError(f"{self.label}: {self._key!r} holds no texts or numbers; name another column: --id")
        seen: set[str] = set()
        for one in self.ids():
            if one in seen or one == "None":
                wrong = "is missing in a row" if one == "None" else f"has {one_line(one, 40)!r} twice"
                raise UserError(f"{self.label}: the id {self._key!r} {wrong}; name another column, or leave --id out")
            seen.add(one)

    def _refuse(self) -> NoReturn:
        raise UserError(f"{self.label}: a table of somebody else; it is read only")

    @contextmanager
    def _read(self) -> Iterator[None]:
        """Turn the engine's errors, and panics on damaged files, into one line."""
        try:
            yield
        except (UserError, GeneratorExit):
            raise
        except Exception as error:
            raise self._unreadable(error) from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            raise self._unreadable(error) from None

    def _unreadable(self, error: BaseException) -> UserError:
        return UserError(
            f"{self.label}: LanceDB cannot read it ({one_line(str(error), 160)}); restore the table from a copy"
        )


def _plain(value: Any) -> Any:
    """A value as a record holds it; dates are texts of ISO 8601."""
    return value.isoformat() if hasattr(value, "isoformat") else value


def _listed(names: Sequence[str]) -> str:
    return ", ".join(one_line(one, 40) for one in names[:20]) or "none"
