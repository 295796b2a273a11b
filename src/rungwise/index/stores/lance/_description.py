"""The description of a LanceDB table in its schema."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rungwise.core import STRICT, Size, from_plain
from rungwise.index.stores._approximation import Approximation
from rungwise.index.stores._base import Side
from rungwise.index.stores._engine_rows import VECTOR
from rungwise.index.stores._vector_files import damaged
from rungwise.index.stores.lance._rows import schema_of
from rungwise.index.stores.lance._tables import MARK
from rungwise.similarity import AnySimilarity

if TYPE_CHECKING:
    from lancedb.table import Table

DESCRIPTION, APPROXIMATION = MARK, f"{MARK}.approximation"
"""Keys of metadata: the schema's, for the description, and that of the field of vectors, for the approximation."""


@dataclass(frozen=True)
class TableDescription:
    """Description of a table, kept in its schema; ``half`` marks vectors in half precision."""

    __pydantic_config__ = STRICT

    dimension: Size
    similarity: AnySimilarity
    side: Side
    identity: str
    half: bool = False

    @property
    def row_bytes(self) -> int:
        """Bytes of a vector."""
        return self.dimension * (2 if self.half else 4)


def described(table: Table, label: str) -> tuple[TableDescription, Approximation | None]:
    """Read a table's description, and the setting of its approximate index where one was chosen.

    A table without a description or with other columns is refused as damaged.
    """
    stored = (table.schema.metadata or {}).get(DESCRIPTION.encode())
    if stored is None:
        raise damaged(label, "its schema does not say what it holds")
    try:
        description = from_plain(TableDescription, json.loads(stored), label)
        wanted = schema_of(description.dimension, description.half, {})
        changed = [one.name for one in wanted if one.type != table.schema.field(one.name).type]
        chosen = (table.schema.field(VECTOR).metadata or {}).get(APPROXIMATION.encode())
        approximation = from_plain(Approximation, json.loads(chosen), label) if chosen else None
    except (ValueError, KeyError, RecursionError) as error:
        raise damaged(label, "its schema is another one") from error
    if changed:
        raise damaged(label, f"its schema has another type of {changed[0]}")
    return description, approximation
