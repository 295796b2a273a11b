"""Which class of store keeps the rows of an index, by the kind that ``index.json`` names."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from rungwise.core.errors import UserError
from rungwise.index.exact import ExactStore
from rungwise.index.store import Side, Store
from rungwise.similarity import Similarity

Kind = Literal["exact"]


def create_store(kind: Kind, folder: Path, name: str, dimension: int, similarity: Similarity, side: Side) -> Store:
    """Make an empty store in the folder of an index.

    Args:
        kind: Of store.
        folder: Of the index.
        name: Of the store: pictures or captions.
        dimension: D.
        similarity: How queries and rows are compared.
        side: Which side of it the rows are.

    Raises:
        UserError: If one stands there already, the kind is unknown, or the place cannot be written.
    """
    _check(kind)
    return ExactStore.create(folder / name, dimension, similarity, side)


def open_store(kind: Kind, folder: Path, name: str, *, all_vectors: bool = False) -> Store:
    """Open a store of an index.

    Args:
        kind: As the index says.
        folder: Of the index.
        name: Of the store.
        all_vectors: Compare the checksums of large files of vectors too, where the store has any.

    Raises:
        UserError: If there is none, it is damaged or was altered, or the kind is unknown.
    """
    _check(kind)
    return ExactStore.open(folder / name, all_vectors=all_vectors)


def _check(kind: str) -> None:
    if kind not in get_args(Kind):
        raise UserError(f"index.json names a store of kind {kind!r}; this rungwise has {' and '.join(get_args(Kind))}")
