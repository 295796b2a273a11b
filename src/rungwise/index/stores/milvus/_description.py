"""The description of a Milvus collection in its properties, and the schema that follows from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rungwise.core import STRICT, Size, UserError, from_plain
from rungwise.index.stores._approximation import Approximation
from rungwise.index.stores._base import Side
from rungwise.index.stores._engine_rows import (
    ID,
    LENGTH,
    RECORD,
    SEAL_OF_RECORD,
    SEAL_OF_VECTOR,
    SEQ,
    VECTOR,
    column_of,
)
from rungwise.index.stores._vector_files import damaged
from rungwise.index.stores.milvus._rows import COLUMNS, CUT, DRAW, LONGEST
from rungwise.index.stores.milvus._server import MissingError, Server
from rungwise.index.stores.milvus.catalog import OURS
from rungwise.similarity import AnySimilarity

if TYPE_CHECKING:
    from pymilvus import CollectionSchema

DESCRIPTION, APPROXIMATION = OURS, f"{OURS}.approximation"
"""Names of a collection's properties: its description, and the setting of its approximate index."""
VERSION = 1
"""Version of the layout of a collection."""
USUAL = Approximation(probes=1, ef=200, refine=1, flat=100_000)
"""Setting of the approximate index where none was chosen."""


@dataclass(frozen=True)
class CollectionDescription:
    """Description of a collection, kept in its properties.

    Attributes:
        fields: Columns that have fields of their own, named by :func:`rungwise.index.stores._engine_rows.column_of`.
        partition: Entry of records whose texts part the rows; empty for none.
        version: Version of the layout.
    """

    __pydantic_config__ = STRICT

    dimension: Size
    similarity: AnySimilarity
    side: Side
    identity: str
    fields: tuple[str, ...] = ()
    partition: str = ""
    version: int = VERSION


def schema_of(description: CollectionDescription) -> CollectionSchema:
    """Schema of a new collection."""
    from pymilvus import DataType, MilvusClient

    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field(ID, DataType.VARCHAR, is_primary=True, max_length=LONGEST)
    schema.add_field(SEQ, DataType.INT64)
    schema.add_field(VECTOR, DataType.FLOAT_VECTOR, dim=description.dimension)
    schema.add_field(LENGTH, DataType.FLOAT)
    schema.add_field(RECORD, DataType.VARCHAR, max_length=LONGEST)
    schema.add_field(SEAL_OF_VECTOR, DataType.INT64)
    schema.add_field(SEAL_OF_RECORD, DataType.INT64)
    schema.add_field(COLUMNS, DataType.JSON)
    schema.add_field(CUT, DataType.BOOL)
    schema.add_field(DRAW, DataType.INT64)
    parted = column_of("text", description.partition) if description.partition else ""
    for name in description.fields:
        match name.partition("_")[0]:
            case "number":
                schema.add_field(name, DataType.DOUBLE)
            case "truth":
                schema.add_field(name, DataType.INT8)
            case _:
                schema.add_field(name, DataType.VARCHAR, max_length=LONGEST, is_partition_key=name == parted)
    return schema


def described(server: Server, collection: str, label: str) -> tuple[CollectionDescription, Approximation]:
    """Read a collection's description, and the setting of its approximate index.

    A collection that is missing, says nothing of itself, or is of another version is refused; ``label`` names the store
    in messages.
    """
    try:
        properties = server.described(collection)["properties"]
    except MissingError as error:
        raise UserError(
            f"{label}: not found ({collection} is no collection there); build the index with `rungwise index`"
        ) from error
    try:
        description = from_plain(CollectionDescription, json.loads(properties[DESCRIPTION]), label)
        chosen = properties.get(APPROXIMATION)
        settings = from_plain(Approximation, json.loads(chosen), label) if chosen else USUAL
    except (KeyError, ValueError, RecursionError) as error:
        raise damaged(label, f"the collection {collection} does not say what it holds") from error
    if description.version != VERSION:
        raise UserError(f"{label}: made by another version of rungwise; index the pictures anew, with --overwrite")
    return description, settings
