"""The rows of a collection, one for each picture, as frames, datasets and Parquet files hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError
from rungwise.core.disk.folders import replacing_folder
from rungwise.core.output import short_repr
from rungwise.data.files._packed_pictures import PackedPicture, Picture

if TYPE_CHECKING:
    pass

FRAMES = "a DataFrame needs pandas; run: pip install 'rungwise[frames]'"
DATASETS = "a Dataset of Hugging Face needs datasets; run: pip install 'rungwise[datasets]'"
_FILE = "collection.parquet"
_GROUP_BYTES, _GROUP_ROWS = 64 << 20, 256
_TAKEN = ("image", "id", "filename", "caption", "caption_id", "split", "label")


@dataclass(frozen=True)
class CollectionRow:
    """A picture with all that a collection says of it; ``split`` is None where there are no splits.

    ``columns`` are values of the further columns by name: texts, numbers, truth values, tuples of texts or None.
    """

    id: str
    picture: Picture | None
    captions: tuple[str, ...]
    caption_ids: tuple[str, ...]
    split: str | None = None
    labels: tuple[str, ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)

    __repr__ = short_repr


def handed_out(picture: Picture) -> str | bytes:
    """A picture as a program takes it: the path of a file of its own, else the bytes of its file, not decoded."""
    return picture.read() if isinstance(picture, PackedPicture) else str(picture)


def collection_frame(rows: Sequence[CollectionRow]) -> Any:
    """A pandas DataFrame of rows; a UserError where there is no pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        raise UserError(FRAMES) from error
    columns = _columns(rows, "id")
    if _has_pictures(rows):
        columns = {"image": [None if row.picture is None else handed_out(row.picture) for row in rows], **columns}
    return pd.DataFrame({name: pd.Series(values, dtype=_dtype(values)) for name, values in columns.items()})


def _dtype(values: Sequence[object]) -> str | None:
    # Whole numbers with gaps would become floats, and lists must not be looked into.
    return None if all(isinstance(one, bool) for one in values) or _all_numbers(values) else "object"


def _all_numbers(values: Sequence[object]) -> bool:
    return all(type(one) is int for one in values) or all(type(one) is float for one in values)


def collection_dataset(rows: Sequence[CollectionRow]) -> Any:
    """A ``datasets.Dataset`` of rows, or a ``DatasetDict`` by split where there are splits; files are only named.

    Raises:
        UserError: If ``datasets`` is not installed.
    """
    try:
        import datasets
    except ImportError as error:
        raise UserError(DATASETS) from error
    kinds = {"caption": ["string"], "caption_id": ["string"], "label": ["string"]}
    columns = _columns(rows, "id")
    features: dict[str, Any] = {
        name: _feature(datasets.Value, kinds.get(name) or _kind(values)) for name, values in columns.items()
    }
    if _has_pictures(rows):
        features = {"image": datasets.Image(), **features}

    def made(some: Sequence[CollectionRow]) -> Any:
        held = _columns(some, "id", list(columns))
        if "image" in features:
            held["image"] = [_held(row.picture, with_file=False) for row in some]
        return datasets.Dataset.from_dict({name: held[name] for name in features}, datasets.Features(features))

    if "split" not in columns:
        return made(rows)
    del features["split"]
    by_split: dict[str, list[CollectionRow]] = {}
    for row in rows:
        by_split.setdefault(str(row.split), []).append(row)
    return datasets.DatasetDict({split: made(some) for split, some in by_split.items()})


def _feature(value: Any, kind: str | list[str]) -> Any:
    return [value(kind[0])] if isinstance(kind, list) else value(kind)


def write_collection(folder: Path, rows: Iterable[CollectionRow]) -> Path:
    """Write rows as a folder with one Parquet file, pictures and all; it is whole or absent.

    Args:
        folder: Folder to write; one that this function wrote is replaced.
        rows: The rows, each with a picture; read once, one after another.

    Returns:
        The folder.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = list(rows)
    columns = _columns(rows, "filename")
    kinds = {"caption": ["string"], "caption_id": ["string"], "label": ["string"]}
    cells = {"bytes": pa.binary(), "path": pa.string()}
    schema = pa.schema(
        [
            ("image", pa.struct(list(cells.items()))),
            *((name, _arrow(pa, kinds.get(name) or _kind(values))) for name, values in columns.items()),
        ]
    )
    with (
        replacing_folder(folder, {_FILE}, "a collection", header=_FILE, seal=False) as draft,
        pq.ParquetWriter(draft / _FILE, schema, use_dictionary=False) as writer,
    ):
        start, held, size = 0, list[Any](), 0
        for number, row in enumerate(rows, start=1):
            held.append(_held(row.picture, with_file=True))
            size += len(held[-1]["bytes"])
            if size >= _GROUP_BYTES or len(held) == _GROUP_ROWS or number == len(rows):
                part = {"image": held, **{name: values[start:number] for name, values in columns.items()}}
                writer.write_table(pa.Table.from_pydict(part, schema))
                start, held, size = number, [], 0
    return folder


def _arrow(pa: Any, kind: str | list[str]) -> Any:
    return pa.list_(pa.string()) if isinstance(kind, list) else pa.type_for_alias(kind)


def _held(picture: Picture | None, *, with_file: bool) -> dict[str, Any]:
    """A cell of Hugging Face: bytes, or only the path of a file unless its bytes are wanted too."""
    if picture is None:
        return {"bytes": None, "path": None}
    if isinstance(picture, PackedPicture):
        return {"bytes": picture.read(), "path": None}
    if not with_file:
        return {"bytes": None, "path": str(picture)}
    from rungwise.core import read_bytes

    return {"bytes": read_bytes(picture, "picture_bytes"), "path": picture.name}


def _has_pictures(rows: Sequence[CollectionRow]) -> bool:
    return any(row.picture is not None for row in rows)


def _columns(rows: Sequence[CollectionRow], called: str, only: Sequence[str] = ()) -> dict[str, list[Any]]:
    """All but the pictures, by column; ``called`` is the column of ids. A column of a taken name gets an underscore."""
    columns: dict[str, list[Any]] = {
        called: [row.id for row in rows],
        "caption": [list(row.captions) for row in rows],
        "caption_id": [list(row.caption_ids) for row in rows],
    }
    if any(row.split is not None for row in rows):
        columns["split"] = [row.split for row in rows]
    if any(row.labels for row in rows) or "label" in only:
        columns["label"] = [list(row.labels) for row in rows]
    for name in dict.fromkeys(name for row in rows for name in row.columns):
        own = name
        while own.strip().lower() in _TAKEN or own in columns:
            own += "_"
        values = (row.columns.get(name) for row in rows)
        columns[own] = [list(value) if isinstance(value, tuple) else value for value in values]
    return columns


def _kind(values: Sequence[Any]) -> str | list[str]:
    first = next((one for one in values if one is not None), None)
    if isinstance(first, list):
        return ["string"]
    return {bool: "bool", int: "int64", float: "float64"}.get(type(first), "string")
