"""Parquet files that hold the pictures themselves, as the library ``datasets`` of Hugging Face writes them.

**Layout**: one row for each picture, or for each caption of one. A column of structures with the fields ``bytes`` and
``path``, or of plain bytes, holds the pictures (``image``, ``jpg``, ...). Captions stand in a column of texts or of
lists of texts (``caption``, ``text``, ``sentences``, ...), or in several (``caption_0``, ``caption_1``, ...). An id, a
split and a label are read where there are columns for them, and all further columns of texts, numbers, dates and the
like are carried. The split of a file is what the ``README.md`` beside it says, or what its name says
(``train-00000-of-00005.parquet``), or that of its folders.

Rows of one id are one picture only if their pictures are equal, byte for byte: a column that is named like an id may
number something else, and files of several splits often count from 0 each. Pictures stay where they are: a collection
holds the place of each
(:class:`~rungwise.data.files.ParquetCell`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from rungwise.core import UserError, is_regular, limits, opened_file, parse_json, parse_yaml
from rungwise.data._collection import ImageCaptions
from rungwise.data.files import Parquet, ParquetCell, cell_digests, leaf, opened_parquet
from rungwise.data.layouts._folder import PictureFolder, folder_name
from rungwise.data.layouts._gatherer import Gatherer, left_out, split_in_words
from rungwise.data.layouts._json_captions import texts_in, without_notes
from rungwise.data.layouts._table_files import CAPTION_COLUMNS, IMAGE_COLUMNS, TITLE, parts_of_column

SUFFIX = ".parquet"

ID_COLUMNS = (
    "filename", "file_name", "image_file", "image_name", "image_id", "img_id", "imgid", "cocoid", "id", "key",
    "__key__",
)  # fmt: skip
MORE_IMAGES = ("jpg", "jpeg", "png", "webp", "image_bytes", "img_bytes", "pixel_values")
_JSON = "json"
"""The column of what a ``.json`` said, in WebDataset shards that were converted to Parquet."""
_NAMES_SHOWN = 20
CAPTION_ID_COLUMNS = ("caption_id", "caption_ids", "captionid", "sentid", "sentids", "sentences_sentid", "sentence_id")
MORE_CAPTIONS = ("sentences_raw", "alt_text")
_SPLIT_COLUMNS, _LABEL_COLUMNS = ("split", "subset"), ("label", "labels", "class", "category")
_NUMBERED = re.compile(rf"({'|'.join(CAPTION_COLUMNS)})[_ -]?(\d+)")
_SHARD = re.compile(r"(.+)-\d{5}-of-\d{5}.*")
_FENCE = "---"
_OF_DATASETS = b"huggingface"
_NO_PICTURES = ("Audio", "Video", "Pdf", "Nifti", "Mesh")
"""Other kinds of files that ``datasets`` stores as it does pictures."""


def picture_tables(files: PictureFolder) -> list[Path]:
    """The Parquet files below a folder that hold pictures; one that cannot be read becomes an issue of the folder."""
    found = []
    for path in files.others:
        if path.suffix.lower() == SUFFIX:
            try:
                found += [files.root / path] if holds_pictures(files.root / path) else []
            except UserError as error:
                files.leave_out(path, str(error))
    return found


def holds_pictures(path: Path) -> bool:
    """Whether a Parquet file has a column of pictures; a UserError if it cannot be read."""
    with opened_parquet(path) as file:
        return bool(_picture_columns(file.schema, _features(file.schema, path)))


def read_picture_tables(
    paths: Sequence[Path], root: Path, *, join_restval: bool = False, captions_only: bool = False
) -> ImageCaptions:
    """The pictures of some Parquet files with their captions.

    Image ids are those of a column such as ``filename`` or ``image_id``; rows of one id with equal pictures are one
    picture with several captions. Without such a column they are the names that go with the pictures, or where those
    come again the name of the file and the number of the row. An id that stands for several pictures gets the name of
    the split before it, or else its pictures are called by file and row. Of ids that stand in several rows all pictures
    are read once, to compare them.

    Args:
        paths: The files.
        root: The folder, whose ``README.md`` may tell the split of each file.
        join_restval: Count the split ``restval`` as ``train``.
        captions_only: Leave the pictures out.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "test-00000-of-00001.parquet"
    >>> import pyarrow, pyarrow.parquet
    >>> table = pyarrow.table({"image": [{"bytes": b"...", "path": "a.jpg"}], "caption": [["A dog.", "A pup."]]})
    >>> pyarrow.parquet.write_table(table, file)
    >>> data = read_picture_tables([file], file.parent)
    >>> data.image_ids, data.captions, data.splits, data.paths[0].place
    (('a.jpg',), ('A dog.', 'A pup.'), ('test',), {'row_group': 0, 'row': 0, 'column': 'image'})
    """
    gatherer = Gatherer(None)
    split_of = _Splits(root, gatherer)
    tables = []
    for path in paths:
        split = split_of.file(path)
        if split is None:
            gatherer.issue("file left out", str(path), "README.md beside it names files, and not this one")
        else:
            tables.append(_Table(path, split, gatherer))
    given = _ids(tables, root, gatherer)
    pictures = _Pictures(tables, given, root, gatherer)
    caption_ids: set[str] = set()
    repeated = 0
    for table, ids in zip(tables, given, strict=True):
        for row, image_id in zip(table.rows(gatherer), ids, strict=False):
            texts = [text for text, _ in row.captions]
            if (named := pictures.image_id(table, row.number, image_id)) is None:
                reason = f"the cell is empty, and {image_id!r} has one{left_out(texts)}"
                gatherer.issue("missing picture", row.where, reason)
                continue
            position = gatherer.packed(named, None if captions_only else row.picture, row.where, texts)
            if position is None:
                continue
            split = "train" if join_restval and row.split == "restval" else row.split
            gatherer.split(position, split, row.where)
            gatherer.label(position, row.labels, row.where)
            for column, value in row.columns.items():
                gatherer.column(position, column, value, row.where)
            for text, caption_id in row.captions:
                repeated += caption_id in caption_ids
                gatherer.caption(position, text, row.where, None if caption_id in caption_ids else caption_id)
                caption_ids |= {caption_id} if caption_id is not None else set()
    if repeated:
        gatherer.issue(
            "caption ids come again", str(root), f"{repeated} captions are numbered by their pictures instead"
        )
    return gatherer.collection(folder_name(root), "parquet")


def _ids(tables: Sequence[_Table], root: Path, gatherer: Gatherer) -> list[list[str]]:
    """The id of each row of each table, by its columns; rows of one id may still hold different pictures."""
    names = Counter(name for table in tables if not table.has_ids for _, name, _ in table.keys if name is not None)
    short = Counter(PurePosixPath(name).name for name in names)
    unique = all(count == 1 for count in names.values())
    if not unique:
        again, count = names.most_common(1)[0]
        gatherer.issue(
            "names come again", str(root), f"{count} pictures are called {again!r}; rows are counted instead"
        )
    found = []
    for table in tables:
        ids: list[str] = []
        for number, (image_id, name, _) in enumerate(table.keys):
            called = name if unique else None
            if called is not None and short[last := PurePosixPath(called).name] == 1:
                called = last or called
            ids.append(image_id or called or table.row_name(number, root))
        found.append(ids)
    return found


class _Pictures:
    """Which rows of one id hold the same picture, and what each of its pictures is called."""

    def __init__(
        self, tables: Sequence[_Table], given: Sequence[Sequence[str]], root: Path, gatherer: Gatherer
    ) -> None:
        counts = Counter(image_id for ids in given for image_id in ids)
        self._digests: dict[Path, dict[int, bytes | None]] = {}
        first: dict[str, dict[bytes | None, tuple[_Table, int]]] = defaultdict(dict)
        for table, ids in zip(tables, given, strict=True):
            digests = table.digests([number for number, one in enumerate(ids) if counts[one] > 1])
            self._digests[table.path] = digests
            for number, digest in digests.items():
                first[ids[number]].setdefault(digest, (table, number))
        self._names: dict[str, dict[bytes | None, str]] = {}
        taken = set(counts)
        for image_id, rows in first.items():
            held = {digest: place for digest, place in rows.items() if digest is not None}
            if len(held) > 1:
                names = _several_names(image_id, list(held.values()), taken, root)
                taken.update(names)
                self._names[image_id] = dict(zip(held, names, strict=True))
                table, number = next(iter(held.values()))
                shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
                detail = f"{image_id!r} stands for {len(names)} different pictures, which are called {shown}"
                gatherer.issue("id of several pictures", table.place(number), detail)
            elif held and None in rows:
                self._names[image_id] = dict.fromkeys(held, image_id)

    def image_id(self, table: _Table, number: int, given: str) -> str | None:
        """The id of a row's picture; None where the row has none, but another row of this id has one."""
        names = self._names.get(given)
        return given if names is None else names.get(self._digests[table.path][number])


def _several_names(image_id: str, rows: Sequence[tuple[_Table, int]], taken: set[str], root: Path) -> list[str]:
    splits = [table.keys[number][2] for table, number in rows]
    names = [f"{split}/{image_id}" for split in splits]
    if not all(splits) or len(set(names)) < len(names) or taken & set(names):
        names = [table.row_name(number, root) for table, number in rows]
    while taken & set(names):  # only where somebody calls pictures as rows are called here
        names = [f"{name} of {image_id}" for name in names]
    return names


@dataclass(frozen=True)
class _Row:
    where: str
    number: int
    picture: ParquetCell
    split: str
    labels: list[str]
    captions: list[tuple[str, str | None]]
    columns: dict[str, Any]


class _Table:
    """One file: its columns by their use, and its rows.

    Attributes:
        path: The file.
        has_ids: Whether there is a column that is named like the id of a picture.
        keys: Id, name of the picture (``/`` between its parts) and split of each row, None or empty where unknown.
    """

    def __init__(self, path: Path, split: str, gatherer: Gatherer) -> None:
        self.path, self._split = path, split
        with opened_parquet(path) as file:
            features = _features(file.schema, path)
            pictures = _picture_columns(file.schema, features)
            if not pictures:
                raise UserError(f"{path}: holds no column of pictures; give another file")
            self._image = pictures[0]
            fields = file.schema.field(self._image).type
            self._named = any(fields.field(at).name == "path" for at in range(fields.num_fields))
            self._id = _column(file.schema, ID_COLUMNS)
            self._captions = _caption_columns(file.schema)
            texts = [name for name, kind in zip(file.schema.names, file.schema.types, strict=True) if _is_text(kind)]
            self._caption_id = _column(file.schema, CAPTION_ID_COLUMNS)
            self._split_column = _column(file.schema, _SPLIT_COLUMNS)
            self._label = _column(file.schema, _LABEL_COLUMNS)
            self._names_of = {name: _texts(_field(_field(features, name), "names")) for name in file.schema.names}
            consumed = {self._image, self._id, self._split_column, self._caption_id, *self._captions}
            consumed -= {name for name in self._captions if name.strip().lower() == TITLE}
            self._further, left = _further_columns(file.schema, consumed)
            self._sizes = file.group_sizes
            self.has_ids = self._id is not None
            wanted = [self._id, self._split_column]
            self.keys = [self._key(cells) for cells in self._cells(file, wanted)]
        if not self._captions and (others := [name for name in texts if name not in (self._id, self._split_column)]):
            detail = f"of its columns of texts ({', '.join(others[:4])}) none is called caption or the like; rename one"
            gatherer.issue("no captions", str(path), detail)
        if left:
            more = f" and {len(left) - _NAMES_SHOWN} more" if len(left) > _NAMES_SHOWN else ""
            kinds = "texts, numbers, truth values, dates or lists of texts"
            detail = (
                f"{', '.join(left[:_NAMES_SHOWN])}{more}; the pictures are those of {self._image}, columns hold {kinds}"
            )
            gatherer.issue("columns left out", str(path), detail)

    def row_name(self, number: int, root: Path) -> str:
        """What a picture without a name is called."""
        return f"{self.path.relative_to(root).with_suffix('').as_posix()}/{number}"

    def place(self, number: int) -> str:
        """File and row, for messages."""
        return f"{self.path}, row {number + 1}"

    def digests(self, numbers: Sequence[int]) -> dict[int, bytes | None]:
        """SHA-256 of the pictures in some rows, ascending; None for an empty cell."""
        found: dict[int, bytes | None] = {}
        before = 0
        for group, size in enumerate(self._sizes):
            begin, end = (bisect_left(numbers, edge) for edge in (before, before + size))
            if begin < end:
                rows = [number - before for number in numbers[begin:end]]
                digests = cell_digests(self.path, group, rows, self._image)
                found.update((before + row, digests.get(row)) for row in rows)
            before += size
        return found

    def _key(self, cells: dict[str, Any]) -> tuple[str | None, str | None, str]:
        image_id = next(iter(_texts(cells.get(self._id))), None) if self._id is not None else None
        return image_id, _path_of(cells, self._image), self._split_of(cells)

    def _split_of(self, cells: dict[str, Any]) -> str:
        split = cells.get(self._split_column) if self._split_column is not None else None
        return split.strip() if isinstance(split, str) and split.strip() else self._split

    def _cells(self, file: Parquet, wanted: Sequence[str | None]) -> Iterator[dict[str, Any]]:
        columns = list(dict.fromkeys(column for column in wanted if column is not None))
        columns += [f"{self._image}.path"] if self._named else []
        if columns:
            yield from file.rows(columns)
        else:
            yield from ({} for _ in range(sum(self._sizes)))

    def rows(self, gatherer: Gatherer) -> Iterator[_Row]:
        """Captions, labels, split and further columns of each row, and the place of its picture."""
        places = ((group, row) for group, size in enumerate(self._sizes) for row in range(size))
        wanted = [*self._captions, self._caption_id, self._split_column, self._label]
        with opened_parquet(self.path) as file:
            rows = zip(self._cells(file, wanted), places, self._further_cells(gatherer), strict=False)
            for number, (cells, (group, row), further) in enumerate(rows):
                texts = [text for column in self._captions for text in _captions(_cell(cells, column))]
                ids = _texts(cells.get(self._caption_id)) if self._caption_id is not None else []
                yield _Row(
                    self.place(number),
                    number,
                    ParquetCell(self.path, group, row, self._image),
                    self._split_of(cells),
                    self._labels(cells),
                    list(zip(texts, ids if len(ids) == len(texts) else [None] * len(texts), strict=True)),
                    {name: self._named_value(name, value) for name, value in further.items()},
                )

    def _further_cells(self, gatherer: Gatherer) -> Iterator[dict[str, Any]]:
        """The further columns of each row; pictures and captions are read also where these cannot be."""
        number = 0
        if self._further:
            try:
                with opened_parquet(self.path) as file:
                    for cells in file.rows(self._further):
                        yield cells
                        number += 1
            except UserError as error:
                reason = str(error).removeprefix(f"{self.path}").lstrip(":, ")
                names = ", ".join(self._further[:_NAMES_SHOWN])
                gatherer.issue("columns left out", self.place(number), f"{names}, from this row on: {reason}")
        yield from ({} for _ in range(sum(self._sizes) - number))

    def _labels(self, cells: dict[str, Any]) -> list[str]:
        given = cells.get(self._label) if self._label is not None else None
        values = _listed(self._named_value(self._label, given))
        return [text.strip() for value in values for text in _texts(value) if text.strip()]

    def _named_value(self, column: str | None, value: Any) -> Any:
        """A cell with the name of each class in place of its number, where the file knows the names."""
        names = self._names_of.get(column or "", [])
        if isinstance(value, list):
            return [self._named_value(column, one) for one in value]
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return names[value] if is_number and 0 <= value < len(names) else value


class _Splits:
    """The split of each file."""

    def __init__(self, root: Path, gatherer: Gatherer) -> None:
        self._root = root
        configs = _configurations(root / "README.md", gatherer) if is_regular(root / "README.md") else []
        self._patterns = [pattern for one in configs for pattern in _patterns(one)]

    def file(self, path: Path) -> str | None:
        """The split of a file, ``""`` if it is unknown; None where the README names files and this is none of them."""
        relative = path.relative_to(self._root)
        if self._patterns:
            name = relative.as_posix()
            return next((split for split, pattern in self._patterns if _matches(name, pattern)), None)
        if shard := _SHARD.fullmatch(path.stem):
            return shard[1].rpartition("-")[2]  # the name of the data set may come first; splits have no hyphens
        folders = [split_in_words(part) for part in reversed(relative.parts[:-1])]
        return split_in_words(path.stem) or next((split for split in folders if split), "")


def _configurations(readme: Path, gatherer: Gatherer) -> list[dict[str, Any]]:
    """The configurations in the front matter of a data set's card: the default one, or the only one.

    Raises:
        UserError: If there are several and none is the default.
    """
    with opened_file(readme, None) as file:
        matter = front_matter(file.read(limits().settings_bytes).decode("utf-8-sig", "replace"))
    try:
        said = parse_yaml(matter, readme)
    except UserError as error:
        gatherer.issue("malformed README", str(readme), f"{error}; files belong to the splits that their names say")
        return []
    configs = [one for one in _listed(said.get("configs") if isinstance(said, dict) else None) if isinstance(one, dict)]
    if len(configs) < 2:
        return configs
    default = [one for one in configs if one.get("default") is True or one.get("config_name") == "default"]
    if len(default) != 1:
        names = ", ".join(str(one.get("config_name")) for one in configs[:5])
        raise UserError(f"{readme}: {len(configs)} configurations ({names}); put the files of one into a folder")
    return default


def front_matter(text: str) -> str:
    r"""The YAML between the two lines of three hyphens at the beginning of a page; empty where there is none."""
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return ""
    end = next((place for place, line in enumerate(lines) if place and line.rstrip() == _FENCE), 0)
    return "".join(f"{line}\n" for line in lines[1:end])


def _patterns(config: dict[str, Any]) -> list[tuple[str, str]]:
    """Split and file pattern of each entry of a configuration."""
    found: list[tuple[str, str]] = []
    for entry in _listed(config.get("data_files")):
        split, paths = (entry.get("split"), entry.get("path")) if isinstance(entry, dict) else ("train", entry)
        patterns = [one.removeprefix("./") for one in _listed(paths) if isinstance(one, str)]
        found += [(split, pattern) for pattern in patterns if isinstance(split, str)]
    return found


def _matches(name: str, pattern: str) -> bool:
    """Whether a pattern matches a file; a star matches any characters here, and two stars also no folder at all."""
    return any(fnmatchcase(name, one) for one in (pattern, pattern.replace("**/", "")))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _features(schema: Any, path: Path) -> Any:
    """Notes of the library ``datasets`` on each column, by name; None where another program wrote the file."""
    said = (schema.metadata or {}).get(_OF_DATASETS)
    return None if said is None else _field(_field(parse_json(said, path), "info"), "features")


def _field(value: Any, name: str | None) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _picture_columns(schema: Any, features: Any) -> list[str]:
    """The columns that hold bytes, those with a usual name of pictures first; plain bytes need such a name."""
    kinds = {name: _field(_field(features, name), "_type") for name in schema.names}
    found = [name for name in schema.names if leaf(schema, name) is not None and kinds[name] not in _NO_PICTURES]
    called = [name for known in (*IMAGE_COLUMNS, *MORE_IMAGES) for name in found if name.strip().lower() == known]
    return [*called, *(name for name in found if leaf(schema, name) != name and name not in called)]


def _further_columns(schema: Any, consumed: Collection[str | None]) -> tuple[list[str], list[str]]:
    """The paths of what is carried as columns, and the names of what cannot be."""
    carried: list[str] = []
    left: list[str] = []
    for name in without_notes(dict.fromkeys(schema.names)):
        if name in consumed:
            continue
        if schema.names.count(name) > 1 or leaf(schema, name) is not None:
            left.append(name)
            continue
        kind = schema.field(name).type
        notes = _notes(name, kind)
        for part, is_small in parts_of_column(name, kind):
            if part not in consumed and part not in notes:
                (carried if is_small else left).append(part)
    return carried, left


def _notes(name: str, kind: Any) -> set[str]:
    """The paths of what img2dataset writes for itself within a column ``json``."""
    fields = dict(_fields(kind)) if name == _JSON else {}
    return {f"{name}.{one}" for one in fields.keys() - without_notes(fields).keys()}


def _fields(kind: Any) -> list[tuple[str, Any]]:
    """Names and types of the fields of a structure; none of another type."""
    from pyarrow.types import is_struct

    return [(kind.field(at).name, kind.field(at).type) for at in range(kind.num_fields)] if is_struct(kind) else []


def _cell(cells: dict[str, Any], path: str) -> Any:
    """The cell of a column, or of a field within the column ``json``."""
    if path in cells:
        return cells[path]
    column, _, inside = path.partition(".")
    return _field(cells.get(column), inside)


def _column(schema: Any, names: Sequence[str]) -> str | None:
    written = {name.strip().lower(): name for name in reversed(schema.names)}
    return next((written[name] for name in names if name in written), None)


def _caption_columns(schema: Any) -> list[str]:
    """The first column of texts with a usual name of captions, or all that are numbered; else those within ``json``."""
    found = _named_like_captions(list(zip(schema.names, schema.types, strict=True)))
    if found or schema.names.count(_JSON) != 1:
        return found
    return [f"{_JSON}.{name}" for name in _named_like_captions(_fields(schema.field(_JSON).type))]


def _named_like_captions(columns: Sequence[tuple[str, Any]]) -> list[str]:
    written = {name.strip().lower(): name for name, kind in reversed(columns) if _is_text(kind)}
    for known in (*CAPTION_COLUMNS, *MORE_CAPTIONS):
        if known in written:
            return [written[known]]
    numbered = [(int(match[2][:9]), name) for low, name in written.items() if (match := _NUMBERED.fullmatch(low))]
    return [name for _, name in sorted(numbered)]


def _is_text(kind: Any) -> bool:
    """Whether a column holds texts, lists of texts, or either in a field ``raw``, as in Karpathy's files."""
    import pyarrow.types as types

    if types.is_list(kind) or types.is_large_list(kind):
        kind = kind.value_type
    if types.is_struct(kind):
        inside = kind.get_field_index("raw")
        kind = kind.field(inside).type if inside >= 0 else kind
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _path_of(cells: dict[str, Any], image: str) -> str | None:
    held = cells.get(image)
    path = held.get("path") if isinstance(held, dict) else None
    return path.replace("\\", "/") if isinstance(path, str) and path.strip() else None


def _captions(cell: object) -> list[str]:
    """The captions in a cell; null is an empty one, as an empty cell of CSV is."""
    if isinstance(cell, list):
        return [text for one in cell for text in _captions(one)]
    if isinstance(cell, dict):
        return _captions(cell.get("raw"))
    return [""] if cell is None else [text for one in _texts(cell) for text in texts_in(one)]


def _texts(cell: object) -> list[str]:
    """The texts in a cell; whole numbers count as texts."""
    if isinstance(cell, list):
        return [text for one in cell for text in _texts(one)]
    if isinstance(cell, dict):
        return _texts(cell.get("raw"))
    return [str(cell)] if isinstance(cell, int | str) and not isinstance(cell, bool) else []
