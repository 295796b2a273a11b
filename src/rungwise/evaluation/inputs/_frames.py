"""Embeddings and similarities that a pandas DataFrame or Series holds, with the ids in its index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError

_ID = "id"


def is_frame(value: object) -> bool:
    """Whether something is a DataFrame or Series of pandas, without importing pandas."""
    return hasattr(value, "iloc") and hasattr(value, "to_numpy")


def vectors_of_frame(frame: Any, what: str) -> tuple[NDArray[Any], tuple[str, ...]]:
    """(items, D) vectors and their ids: those of the column ``id``, else those of the index.

    Args:
        frame: A DataFrame with a column for each dimension or one column of vectors, or a Series of vectors.
        what: Name of the parameter, for messages.

    Raises:
        UserError: If it holds anything but vectors of one length.

    >>> import pandas as pd
    >>> vectors_of_frame(pd.DataFrame({"id": ["b", "a"], "vector": [[0.5, 1.0], [0.0, 2.0]]}), "image_embeddings")
    (array([[0.5, 1. ],
           [0. , 2. ]]), ('b', 'a'))
    """
    frame = frame if hasattr(frame, "columns") else frame.to_frame()
    if _ID in frame.columns:
        frame = frame.set_index(_ID)
    is_column_of_vectors = frame.shape[1] == 1 and frame.dtypes.iloc[0].kind == "O"
    try:
        vectors = np.array(frame.iloc[:, 0].tolist()) if is_column_of_vectors else frame.to_numpy()
        vectors = vectors.astype(np.float64) if vectors.dtype.kind == "O" else vectors
    except (TypeError, ValueError):
        vectors = np.empty(0)
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        columns = ", ".join(str(one) for one in frame.columns[:12])
        raise UserError(
            f"{what}: the columns {columns} are no vectors of one length; give a column for each dimension, or one"
            f" column of vectors, and the ids as the index or a column {_ID!r}"
        )
    return vectors, ids_of(frame.index)


def ids_of(index: Iterable[object]) -> tuple[str, ...]:
    """The ids in an index; none where it only counts the rows.

    >>> ids_of(["b", "a"]), ids_of([1, 0]), ids_of(range(2))
    (('b', 'a'), ('1', '0'), ())
    """
    ids = tuple(map(str, index))
    return () if ids == tuple(map(str, range(len(ids)))) else ids
