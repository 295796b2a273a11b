"""Collections from what a program holds: a pandas DataFrame, lists, a ``datasets.Dataset`` of Hugging Face.

Columns are recognised by the names that tables and Parquet files on the disk have, see
:mod:`rungwise.data.layouts._table_files`. A column that is named by its argument is that one, whatever it is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from numbers import Number
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from rungwise.core import UserError, user_path
from rungwise.core.network import address_of
from rungwise.data._collection import ImageCaptions
from rungwise.data.files import (
    IN_MEMORY,
    EncodedOnce,
    MemoryPicture,
    PackedPicture,
    Picture,
    fault_of_pixels,
    may_be_picture,
)
from rungwise.data.layouts import (
    CAPTION_COLUMNS,
    IMAGE_COLUMNS,
    MORE_CAPTIONS,
    MORE_IMAGES,
    OPTIONAL_COLUMNS,
    PICTURE_SUFFIXES,
    Gatherer,
    left_out,
)
from rungwise.data.layouts import CAPTION_ID_COLUMNS as CAPTION_IDS
from rungwise.data.layouts import ID_COLUMNS as IDS

LAYOUT = "memory"
"""Layout of a collection that was read from memory."""
_NUMBERED = re.compile(rf"({'|'.join(CAPTION_COLUMNS)})[_ -]?(\d+)")
_WEB = re.compile(r"https?://", re.IGNORECASE)
_SHOWN = 12
_OF_LISTS = "picture"
"""What messages call a row of lists."""

Captions = str | Sequence[str] | None
"""The captions of one picture: a text, several, or none."""


def is_frame(source: object) -> bool:
    """Whether something is a pandas DataFrame, without importing pandas."""
    return _is_of(source, "pandas", "DataFrame")


def is_dataset(source: object) -> bool:
    """Whether something is a dataset of Hugging Face's ``datasets``, or a mapping of some, without importing it."""
    kinds = ("Dataset", "DatasetDict", "IterableDataset", "IterableDatasetDict")
    if any(_is_of(source, "datasets", kind) for kind in kinds):
        return True
    return isinstance(source, Mapping) and bool(source) and all(map(is_dataset, source.values()))


def as_list(source: object) -> object:
    """The members of a Series, of an array of one axis or of an iterator; anything else as it is."""
    is_array = isinstance(source, np.ndarray) and source.ndim == 1
    if is_array or isinstance(source, Iterator) or _is_of(source, "pandas", "Series"):
        members: Any = source
        return members.tolist() if is_array else list(members)
    return source


def holds_lists(source: object, captions: object) -> bool:
    """Whether pictures and captions are given as lists, and not as folders and a file of captions."""
    if isinstance(source, str | Path | bytes | bytearray | memoryview) or not isinstance(source, Sequence):
        return False
    if captions is None and source and all(map(_names_picture, source)):
        return True
    given = captions is not None and not isinstance(captions, str | Path)
    return given or any(not isinstance(one, str | Path) for one in source)


def _names_picture(member: object) -> bool:
    """Whether a member of a list names a picture file; ``NAME=FOLDER`` and folders do not."""
    return (
        isinstance(member, str | Path)
        and Path(member).suffix.lower() in PICTURE_SUFFIXES
        and not user_path(member).is_dir()
    )


def type_name(value: object) -> str:
    """The type of a wrong argument, for a message about it.

    >>> type_name(5), type_name(None)
    ('int', 'None')
    """
    return "None" if value is None else type(value).__name__


def _is_of(source: object, library: str, kind: str) -> bool:
    return any(one.__name__ == kind and one.__module__.partition(".")[0] == library for one in type(source).__mro__)


def _is_image(cell: object) -> bool:
    """Whether something is a Pillow picture, without importing Pillow, which commands that read files may not need."""
    return _is_of(cell, "PIL", "Image")


def from_lists(
    pictures: Sequence[object],
    captions: Sequence[Captions] | None = None,
    *,
    ids: Sequence[str | int] | None = None,
    splits: Sequence[str] | None = None,
    folder: Path | str = "",
    name: str = LAYOUT,
) -> ImageCaptions:
    """A collection of pictures and captions in lists of one length.

    Args:
        pictures: (n,) Pillow pictures, paths, bytes of picture files, or uint8 arrays of (height, width, 3). One that
            stands several times is one picture with several captions.
        captions: (n,) a text, several or None for each; NaN is none.
        ids: (n,) ids; else a path is an id, and other pictures are counted from 0.
        splits: (n,) names of splits.
        folder: Folder of paths that are relative.
        name: Name of the collection.

    Raises:
        UserError: If lengths differ, no picture is there, a caption is no text, an array is no picture, or an id stands
            for several pictures.

    >>> from PIL import Image
    >>> data = from_lists([Image.new("L", (2, 2)), Image.new("L", (2, 2), 9)], ["black", ["grey", "dark"]])
    >>> data.image_ids, data.captions, data.image_of_caption.tolist()
    (('0', '1'), ('black', 'grey', 'dark'), [0, 1, 1])
    """
    images = _listed("pictures", pictures, None)
    if not images:
        raise UserError(f"{name}: the list of pictures is empty; give at least one picture")
    there = {"image": images}
    columns = {"caption": ("captions", captions), "id": ("ids", ids), "split": ("splits", splits)}
    there |= {what: _listed(*given, len(images)) for what, given in columns.items() if given[1] is not None}
    rows = [dict(zip(there, cells, strict=True)) for cells in zip(*there.values(), strict=True)]
    use = _Use("image", ("caption",) if captions is not None else (), "id" if ids is not None else None)
    use.split = "split" if splits is not None else None
    part = _Part(list(there), rows, images.__getitem__, use, "", _OF_LISTS, has_ids=ids is not None)
    return _read([part], name, Path(folder))


def _listed(parameter: str, given: object, count: int | None) -> list[Any]:
    """The cells of a list; a UserError if it is none, or has not one for each of so many pictures."""
    pictures = "picture" if count == 1 else "pictures"
    each = "one or several texts" if parameter == "captions" else "one"
    remedy = "give a list of pictures" if count is None else f"give a list with {each} for each"
    if isinstance(given, str) and count is not None:
        raise UserError(f"{parameter}= is one text for {count} {pictures}; {remedy}")
    wrong = UserError(f"{parameter}= got {type_name(given)}; {remedy}")
    if isinstance(given, str | bytes | bytearray | memoryview | Mapping | Set) or is_frame(given) or _is_image(given):
        raise wrong
    if not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
        raise wrong
    cells = [_plain(one) for one in given]
    if count is not None and len(cells) != count:
        entries = "entry" if len(cells) == 1 else "entries"
        raise UserError(f"{parameter}= has {len(cells)} {entries} for {count} {pictures}; {remedy}")
    return cells


def from_frame(
    frame: Any,
    *,
    image: str | None = None,
    caption: str | Sequence[str] | None = None,
    split: str | None = None,
    id: str | None = None,
    folder: Path | str = "",
    name: str = LAYOUT,
) -> ImageCaptions:
    """A collection of a pandas DataFrame, with a row for each picture or for each caption of one.

    Args:
        frame: The frame; cells without a value are empty ones.
        image: Column of the pictures, as :func:`from_lists` takes them; None takes the first with a usual name.
        caption: Column of captions, texts or lists of texts, or several such columns; None as above.
        split: Column of splits.
        id: Column of the ids of pictures. Rows of one id are one picture.
        folder: Folder of paths that are relative.
        name: Name of the collection.

    Raises:
        UserError: If a column is missing, no picture is there, a caption is bytes, an array is no picture, or an id
            that was asked for stands for several pictures.

    >>> import pandas as pd
    >>> from PIL import Image
    >>> pictures = [Image.new("L", (2, 2)), Image.new("L", (2, 2), 9)]
    >>> frame = pd.DataFrame({"image": pictures, "caption": ["black", "grey"], "year": [2020, 2021]})
    >>> data = from_frame(frame)
    >>> data.captions, dict(data.columns)
    (('black', 'grey'), {'year': (2020, 2021)})
    """
    if not len(frame):
        raise UserError(f"{name}: the DataFrame has no rows; give one with a row for each picture or caption")
    names = [str(one) for one in frame.columns]
    if len(set(names)) < len(names):
        again = next(one for one in names if names.count(one) > 1)
        raise UserError(f"{name}: column {again!r} stands twice; rename one")
    cells = [[_plain(one) for one in frame[column].tolist()] for column in frame.columns]
    by_name = dict(zip(names, cells, strict=True))
    kinds = {one: next((cell for cell in column if cell is not None), None) for one, column in by_name.items()}
    held = [one for one, first in kinds.items() if _holds_pixels(first)]
    use = _use(names, held, name, image, caption, split, id)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]
    pictures = by_name.get(use.image or "", [])
    return _read([_Part(names, rows, pictures.__getitem__, use, "", "row", has_ids=id is not None)], name, Path(folder))


def from_dataset(
    dataset: Any,
    *,
    image: str | None = None,
    caption: str | Sequence[str] | None = None,
    split: str | None = None,
    id: str | None = None,
    folder: Path | str = "",
    name: str = LAYOUT,
) -> ImageCaptions:
    """A collection of a ``Dataset`` of Hugging Face, or of a ``DatasetDict``, whose names are the splits.

    No picture is decoded, or read, before somebody asks for it. Class labels get their names. The arguments and errors
    are those of :func:`from_frame`.

    >>> import datasets
    >>> data = from_dataset(datasets.Dataset.from_dict({"image": [b"..."], "caption": [["A dog.", "A pup."]]}))
    >>> data.image_ids, data.captions
    (('0',), ('A dog.', 'A pup.'))
    """
    parts = dict(dataset.items()) if isinstance(dataset, Mapping) else {"": dataset}
    found = []
    for one in parts.values():
        if not hasattr(one, "select_columns") or not hasattr(one, "__len__"):
            raise UserError(f"{name}: is a stream without an end; give a Dataset, such as of take(1000)")
    if not any(map(len, parts.values())):
        raise UserError(f"{name}: the {type_name(dataset)} has no rows; give one with a row for each picture")
    for called, one in parts.items():
        found.append(_dataset_part(one, called, name, (image, caption, split, id)))
    return _read(found, name, Path(folder))


def _dataset_part(dataset: Any, called: str, name: str, asked: tuple[Any, ...]) -> _Part:
    plain = dataset.with_format(None)
    kinds = {column: type(feature).__name__ for column, feature in plain.features.items()}
    held = [
        column for column, kind in kinds.items()
        if kind == "Image" or getattr(plain.features[column], "dtype", "") in ("binary", "large_binary")
    ]  # fmt: skip
    use = _use(list(kinds), held, name, *asked)
    heavy = {column for column, kind in kinds.items() if kind in ("Image", "Audio", "Video", "Pdf", "Nifti", "Mesh")}
    heavy |= {one for one in (*held, use.image) if one is not None}
    use.left += sorted(heavy - {use.image})
    light = plain.select_columns([column for column in kinds if column not in heavy])
    names = {column: _class_names(light.features[column]) for column in light.features}

    def rows() -> Iterable[dict[str, Any]]:
        if not light.features:
            return ({} for _ in range(len(plain)))
        return ({one: _named(cell, names[one]) for one, cell in row.items()} for row in light)

    def picture(row: int) -> object:
        raise AssertionError  # no column of pictures, so that nobody asks

    if use.image is not None:
        only = plain.select_columns([use.image])
        if kinds[use.image] == "Image":
            only = only.cast_column(use.image, type(plain.features[use.image])(decode=False))
        picture = _Cells(only, use.image)
    columns = [column for column in kinds if column not in use.left]
    return _Part(columns, rows(), picture, use, called, "row", has_ids=asked[3] is not None)


class _Cells:
    """Gives the picture of a row, of which it opens nothing but the name."""

    def __init__(self, dataset: Any, column: str) -> None:
        self._dataset, self._column = dataset, column
        self._paths: list[Any] | None = None
        flat = dataset.flatten()
        if f"{column}.path" in flat.column_names:
            self._paths = [row[f"{column}.path"] for row in flat.select_columns([f"{column}.path"])]
        self._is_text = getattr(dataset.features[column], "dtype", "") in ("string", "large_string")

    def __call__(self, row: int) -> object:
        path = None if self._paths is None else self._paths[row]
        if self._is_text:
            return self._dataset[row][self._column]
        if path and Path(path).is_file() and self._dataset[row][self._column].get("bytes") is None:
            return path
        return _Later(_CellBytes(self._dataset, self._column, row), path)


@dataclass(frozen=True)
class _CellBytes:
    """The bytes in a cell of a dataset, read each time that it is called."""

    dataset: Any
    column: str
    row: int

    def __call__(self) -> bytes:
        cell = self.dataset[self.row][self.column]
        data = cell.get("bytes") if isinstance(cell, Mapping) else cell
        if not data:
            raise UserError(f"row {self.row} of the dataset holds no picture in {self.column!r}; leave the row out")
        return bytes(data)


@dataclass(frozen=True)
class _Later:
    """A picture that is read when it is asked for, and the name that goes with it."""

    content: Callable[[], bytes]
    path: str | None


def _class_names(feature: Any) -> Sequence[str]:
    inner = getattr(feature, "feature", feature[0] if isinstance(feature, list) and feature else feature)
    names = getattr(inner, "names", None)
    return names if isinstance(names, list) else ()


def _named(cell: Any, names: Sequence[str]) -> Any:
    if not names or cell is None:
        return cell
    if isinstance(cell, list):
        return [_named(one, names) for one in cell]
    return names[cell] if isinstance(cell, int) and 0 <= cell < len(names) else cell


@dataclass
class _Use:
    """What columns are used for; ``left`` are those that cannot be carried, ``notes`` what was chosen among several."""

    image: str | None
    captions: tuple[str, ...] = ()
    id: str | None = None
    split: str | None = None
    caption_id: str | None = None
    labels: tuple[str, ...] = ()
    left: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _use(
    columns: Sequence[str],
    held: Sequence[str],
    name: str,
    image: object,
    caption: object,
    split: object,
    own_id: object,
) -> _Use:
    """The use of each column: what was asked for, else the first with a usual name."""
    is_one = isinstance(caption, str | bytes | Mapping) or not isinstance(caption, Iterable)
    several: Any = () if caption is None else (caption,) if is_one else caption
    captions = tuple(_column("caption", one) for one in several)
    image, split, own_id = (
        None if one is None else _column(parameter, one)
        for parameter, one in (("image", image), ("split", split), ("id", own_id))
    )
    shown = ", ".join(columns[:_SHOWN]) or "none"
    asked = [("image", image), ("split", split), ("id", own_id), *(("caption", one) for one in captions)]
    for what, column in asked:
        if column is not None and column not in columns:
            raise UserError(f"{name}: there is no column {column!r} ({what}=); there are {shown}")
    written = {column.strip().lower(): column for column in reversed(columns)}
    used = {one for one in (image, split, own_id, *captions) if one is not None}
    use = _Use(image, captions, own_id, split)

    def chosen(what: str, names: Iterable[str], among: Iterable[str] = columns) -> str | None:
        there = set(among)
        found = [written[one] for one in names if one in written and written[one] in there - used]
        if len(found) > 1:
            rest = ", ".join(map(repr, found[1:4]))
            use.notes.append(f"{what} is read of {found[0]!r}, and not of {rest}; name another by {what}=")
        used.update(found[:1])
        return found[0] if found else None

    if image is None and written.get("image") not in (None, *used):
        use.image = written["image"]
        used.add(use.image)
    elif image is None:
        pictures = (*IMAGE_COLUMNS, *MORE_IMAGES)
        with_pixels = [one for one in held if one not in used]
        use.image = chosen("image", pictures, with_pixels) if with_pixels else None
        if use.image is None and with_pixels:
            use.image = with_pixels[0]
            used.add(use.image)
            if len(with_pixels) > 1:
                use.notes.append(f"image is read of {use.image!r}, and not of {with_pixels[1]!r}; name one by image=")
        use.image = use.image or chosen("image", pictures)
        if use.image is None:
            raise UserError(f"{name}: no column is called image or the like; there are {shown}; name one by image=")
    if not captions:
        known = (*CAPTION_COLUMNS, *MORE_CAPTIONS)
        one = chosen("caption", known)
        matches = ((_NUMBERED.fullmatch(low), column) for low, column in written.items() if column not in used)
        numbered = sorted((int(match[2][:9]), column) for match, column in matches if match)
        use.captions = (one,) if one is not None else tuple(column for _, column in numbered)
        used.update(use.captions)
    use.split = use.split or chosen("split", OPTIONAL_COLUMNS["split"])
    use.id = use.id or chosen("id", ("id", *(one for one in IDS if one != "id")))
    use.caption_id = chosen("caption_id", CAPTION_IDS)
    found = [written[one] for one in (*OPTIONAL_COLUMNS["label"], *OPTIONAL_COLUMNS["labels"]) if one in written]
    use.labels = tuple(one for one in found[:1] if one not in used)
    return use


def _column(parameter: str, given: object) -> str:
    """The name of a column that was asked for; a frame may call its columns by numbers."""
    if isinstance(given, bool) or not isinstance(given, str | int | np.integer):
        raise UserError(f"{parameter}= got {type_name(given)}; give the name of a column")
    return str(given)


@dataclass
class _Part:
    """A table: its columns and rows without pictures, the picture of each row, and the split that all are in."""

    columns: Sequence[str]
    rows: Iterable[Mapping[str, Any]]
    picture: Callable[[int], object]
    use: _Use
    split: str
    what: str
    has_ids: bool


def _read(parts: Sequence[_Part], name: str, folder: Path) -> ImageCaptions:
    gatherer = Gatherer(None)
    known: dict[str, object] = {}
    all_ids: set[str] = set()
    first_missing = first_doubt = ""
    doubts = 0
    for part in parts:
        use, where = part.use, f"{name}/{part.split}" if part.split else name
        rows = list(part.rows)
        cells = [part.picture(number) for number in range(len(rows))]
        for number, cell in enumerate(cells):
            if isinstance(cell, np.ndarray) and (fault := fault_of_pixels(cell)):
                of = "" if part.what == _OF_LISTS else f"column {use.image!r} (image=): "
                raise UserError(f"{where}, {part.what} {number}: {of}{fault}")
        for note in use.notes:
            gatherer.issue("several columns", where, note)
        if use.left:
            gatherer.issue("columns left out", where, f"{', '.join(use.left)}: the pictures are those of {use.image}")
        if not use.captions:
            shown = ", ".join(part.columns[:_SHOWN])
            gatherer.issue("no captions", where, f"no column is called caption or the like (there are {shown})")
        ids = _ids(part, rows, cells, where, gatherer, all_ids)
        all_ids.update(ids)
        consumed = {use.image, use.id, use.split, use.caption_id, *use.captions, *use.labels}
        further = [column for column in part.columns if column not in consumed]
        for number, (row, cell, image_id) in enumerate(zip(rows, cells, ids, strict=True)):
            place = f"{where}, {part.what} {number}"
            texts = [text for column in use.captions for text in _texts(row.get(column), part, column, place)]
            picture = known.get(image_id)
            if picture is None:
                found = _picture(cell, image_id, folder)
                if isinstance(found, str):
                    first_missing = first_missing or f"{place}: {found}"
                    gatherer.issue("missing picture", place, f"{found}{left_out(texts)}")
                    continue
                known[image_id] = picture = found
                if doubt := _doubt(found):
                    first_doubt, doubts = first_doubt or f"{place}: {doubt}", doubts + 1
                    gatherer.issue("no known picture format", place, doubt)
            assert isinstance(picture, Path | PackedPicture)
            position = gatherer.packed(image_id, picture, place, texts)
            if position is None:
                continue
            gatherer.split(position, _text(row.get(use.split)) if use.split else part.split, place)
            gatherer.label(position, [one for column in use.labels for one in _captions(row.get(column))], place)
            for column in further:
                gatherer.column(position, column, _value(row.get(column)), place)
            caption_ids = _captions(row.get(use.caption_id)) if use.caption_id else []
            if len(caption_ids) != len(texts):
                caption_ids = []
            for at, text in enumerate(texts):
                gatherer.caption(position, text, place, caption_ids[at] if caption_ids else None)
    if not known and first_missing:
        remedy = "give pictures, or the whole paths of their files"
        raise UserError(f"{first_missing}, and no other picture is there; {remedy}")
    if known and doubts == len(known):
        raise UserError(f"{first_doubt}, and no other picture is there; give the bytes of picture files")
    return gatherer.collection(name, LAYOUT)


def _ids(
    part: _Part, rows: Sequence[Mapping[str, Any]], cells: Sequence[object], where: str, gatherer: Gatherer,
    taken: set[str],
) -> list[str]:  # fmt: skip
    """The id of each row: of its column, or the path of its picture, or its number.

    Raises:
        UserError: If a column of ids was asked for, and one stands for different pictures.
    """
    if (column := part.use.id) is not None:
        ids = [_text(row.get(column)) for row in rows]
        why = _why_no_ids(ids, cells)
        if not why:
            return ids
        if part.has_ids:
            raise UserError(f"{where}: {column!r} as ids: {why}; correct it, or name another column by id=")
        gatherer.issue("id of several pictures", where, f"{column!r} gives no ids: {why}; it is kept as a column")
        part.use.id = None
    names = [_name(cell) for cell in cells]
    plain = [
        PurePosixPath(one).name if isinstance(cell, _Later | Mapping) else one
        for one, cell in zip(names, cells, strict=True)
    ]
    single = [one for one, cell in zip(plain, cells, strict=True) if isinstance(cell, _Later | Mapping)]
    if all(plain) and len(set(single)) == len(single) and not taken & set(single):
        return plain
    first: dict[int, int] = {}
    prefix = f"{part.split}/" if part.split else ""
    return [
        one if one and not isinstance(cell, _Later | Mapping) else f"{prefix}{first.setdefault(id(cell), number)}"
        for number, (one, cell) in enumerate(zip(names, cells, strict=True))
    ]


def _why_no_ids(ids: Sequence[str], cells: Sequence[object]) -> str:
    first: dict[str, object] = {}
    for number, (one, cell) in enumerate(zip(ids, cells, strict=True)):
        if not one.strip():
            return f"row {number} has none"
        if one in first and not _same(first[one], cell):
            return f"{one!r} stands for different pictures"
        first.setdefault(one, cell)
    return ""


def _same(first: object, second: object) -> bool:
    if first is second:
        return True
    if isinstance(first, str | Path) or isinstance(second, str | Path):
        return str(first) == str(second)
    pictures = [_picture(one, "", Path()) for one in (first, second)]
    return all(isinstance(one, PackedPicture) for one in pictures) and (
        pictures[0].read() == pictures[1].read()  # type: ignore[union-attr]  # as just seen
    )


def _name(cell: object) -> str:
    """The path that goes with a picture; empty where there is none."""
    path = cell.path if isinstance(cell, _Later) else cell.get("path") if isinstance(cell, Mapping) else cell
    return str(path).replace("\\", "/") if isinstance(path, str | Path) else ""


def _holds_pixels(cell: object) -> bool:
    if isinstance(cell, np.ndarray):
        return not fault_of_pixels(cell)
    is_cell = isinstance(cell, Mapping) and {"bytes", "path"} & cell.keys()
    return bool(is_cell) or _is_image(cell) or isinstance(cell, bytes | bytearray | memoryview)


def _picture(cell: object, called: str, folder: Path) -> Picture | str:
    """The picture of a cell, or why there is none."""
    if isinstance(cell, Mapping):
        data = cell.get("bytes")
        return _picture(data if data is not None else cell.get("path"), called, folder)
    if isinstance(cell, str | Path):
        if not str(cell).strip():
            return "the cell is empty"
        if _WEB.match(str(cell)):
            return f"{str(cell)[:200]!r} is an address; download the pictures first"
        path = folder / user_path(cell)
        if address_of(path):
            return path
        # Whoever opens it later may stand in another folder.
        return path.absolute() if path.is_file() else f"{str(path)[:200]!r}: no such file"
    if isinstance(cell, _Later):
        return MemoryPicture(IN_MEMORY, called, cell.content)
    if isinstance(cell, bytes | bytearray | memoryview):
        return MemoryPicture(IN_MEMORY, called, _Bytes(bytes(cell))) if len(cell) else "the cell is empty"
    if _is_image(cell) or isinstance(cell, np.ndarray):
        pixels: Any = cell
        return MemoryPicture(IN_MEMORY, called, EncodedOnce(pixels))
    return "the cell is empty" if cell is None else f"got {type_name(cell)}, which is no picture"


def _doubt(picture: object) -> str:
    """Why bytes in memory can be no picture, as far as their beginning tells; empty if they may be one."""
    content = picture.content if isinstance(picture, MemoryPicture) else None
    if not isinstance(content, _Bytes) or may_be_picture(content.data):
        return ""
    return f"the bytes begin with {content.data[:_SHOWN]!r}, as no known picture format does"


@dataclass(frozen=True)
class _Bytes:
    """Bytes of a file, as a function."""

    data: bytes = field(repr=False)

    def __call__(self) -> bytes:
        return self.data


def _plain(cell: Any) -> Any:
    """A cell of a frame as Python has it; None for what pandas calls no value."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or _is_image(cell) or isinstance(cell, str | bytes | list | tuple | Mapping | np.ndarray):
        return cell
    is_nan = isinstance(cell, Number) and cell != cell
    return None if is_nan or type(cell).__name__ in ("NAType", "NaTType") else cell


def _value(cell: Any) -> Any:
    return cell.tolist() if isinstance(cell, np.ndarray) else list(cell) if isinstance(cell, tuple) else cell


def _texts(cell: Any, part: _Part, column: str, place: str) -> list[str]:
    """The captions of a cell; a UserError if it holds what is no text."""
    if (wrong := _no_text(cell, numbers=part.what != _OF_LISTS)) is not None:
        of = "captions=" if part.what == _OF_LISTS else f"column {column!r} (caption=)"
        remedy = "decode them to text" if isinstance(wrong, bytes | bytearray) else "give text"
        raise UserError(f"{place}: {of} holds {type_name(wrong)}; {remedy}")
    return _captions(cell)


def _no_text(cell: Any, *, numbers: bool) -> object:
    """What a cell of captions holds that is no text; None if there is no such thing."""
    cell = _plain(cell)
    if isinstance(cell, Mapping) and "raw" in cell:
        cell = cell["raw"]
    if isinstance(cell, list | tuple | np.ndarray):
        return next((wrong for one in cell if (wrong := _no_text(one, numbers=numbers)) is not None), None)
    if cell is None or isinstance(cell, str):
        return None
    is_wrong = _is_image(cell) or isinstance(cell, bytes | bytearray | memoryview)
    return cell if is_wrong or not numbers else None


def _captions(cell: Any) -> list[str]:
    """The texts of a cell: one, several, or none."""
    cell = _plain(cell)
    if cell is None:
        return []
    if isinstance(cell, Mapping):
        return _captions(cell.get("raw"))
    if isinstance(cell, list | tuple | np.ndarray):
        return [text for one in cell for text in _captions(one)]
    return [_text(cell)]


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer():  # whole numbers of a column with gaps
        return str(int(cell))
    return str(cell)
