"""Captions in a table beside the pictures: CSV, TSV, JSON lines, simple JSON or Parquet."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from rungwise.core import UserError, parse_json, require_regular
from rungwise.data._collection import ImageCaptions, Issue
from rungwise.data.layouts._folder import (
    PICTURE_SUFFIXES,
    PictureFolder,
    folder_name,
    one_of_copies,
    picture_id,
    readable_name,
)
from rungwise.data.layouts._gatherer import Gatherer, in_another_split, left_out, shown, split_in_file_name
from rungwise.data.layouts._json_captions import SUFFIX as JSON_SUFFIX
from rungwise.data.layouts._json_captions import is_json_captions, json_files, looks_like_captions, texts_in, why_not
from rungwise.data.layouts._rivals import claims, leave_out, named_by_path, pictures_named
from rungwise.data.layouts._table_files import (
    CAPTION_COLUMNS,
    COMMENT,
    IMAGE_COLUMNS,
    NUMBER_OF_COMMENT,
    OPTIONAL_COLUMNS,
    TITLE,
    Cells,
    Table,
    columns_of,
    missing_columns,
    read_table,
)

TABLE_SUFFIXES = frozenset({".csv", ".tsv", ".jsonl", ".ndjson", ".parquet"})
"""Lower-case file extensions that count as tables."""
_METADATA, _FILE_NAME = "metadata", "file_name"
"""Name of the file and of its column of pictures in the layout that Hugging Face calls imagefolder."""
_LARGE, _LARGE_HEAD = 16 << 20, 1 << 16
"""Bytes of a table of which the columns are looked at first, and of its beginning."""
_LEFT = "table left out"
_SPREADSHEETS = frozenset({".xlsx", ".xls", ".ods", ".numbers"})
_LABEL_SEPARATOR = ";"
_NAMED_FORMAT = re.compile(rb'\s*\{\s*"format":\s*"rungwise (\w+)"')
_HEAD_BYTES = 256


def table_files(files: PictureFolder) -> list[Path]:
    r"""The tables below a folder, and texts that begin with a table's header."""
    return [
        files.root / path
        for path in files.others
        if path.suffix.lower() in TABLE_SUFFIXES or (path.suffix.lower() == ".txt" and _has_header(files, path))
    ]


def json_tables(files: PictureFolder) -> list[Path]:
    """The files below a folder that hold captions in simple JSON."""
    return json_files(files, IMAGE_COLUMNS, CAPTION_COLUMNS)


def is_json_table(path: Path) -> bool:
    """Whether a file holds captions in simple JSON; a UserError if it cannot be read."""
    return path.suffix.lower() == JSON_SUFFIX and is_json_captions(path, IMAGE_COLUMNS, CAPTION_COLUMNS)


def ignored_files(files: PictureFolder) -> list[Issue]:
    """Issues for files beside pictures that seem to describe them and are not read: unknown JSON, spreadsheets.

    This is for a folder whose captions were read from elsewhere, or that has none.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> _ = (root / "captions.json").write_text('[{"picture": "a.jpg", "words": "A dog."}]')
    >>> (root / "prices.xlsx").touch()
    >>> [(issue.where, issue.detail) for issue in ignored_files(PictureFolder(root))]
    [('captions.json', 'no key says the caption (such as caption or captions); its entries have picture, words'),
     ('prices.xlsx', 'a spreadsheet; save it as CSV')]
    """
    found = []
    for path in files.others:
        suffix = path.suffix.lower()
        if files.is_taken(path):
            continue
        if suffix == JSON_SUFFIX and looks_like_captions(path):
            why = why_not(files.root / path, IMAGE_COLUMNS, CAPTION_COLUMNS)
        elif suffix in _SPREADSHEETS:
            why = "a spreadsheet; save it as CSV"
        else:
            continue
        found.append(Issue("captions not read", readable_name(path), why))
    return found


def read_tables(
    paths: Sequence[Path], files: PictureFolder, captions_only: bool = False, *, asked: bool
) -> ImageCaptions | None:
    r"""Captions of tables beside the pictures.

    Needed are a column of :data:`IMAGE_COLUMNS` and one of :data:`CAPTION_COLUMNS`. Optional are ``split``,
    ``caption_id``, ``label`` (one) and ``labels`` (a list, or texts joined by ``;``). Labels and every further column
    are carried (:mod:`rungwise.data._columns`). Image ids are the names in the image column; those of a table in a
    folder below that names pictures of its own folder are the paths of the pictures (``train/1.png``). The split is
    that of the row, else what the table's name says, else what its folder says. The layout is ``"table"``, or
    ``"json"`` of simple JSON; in a folder that rungwise generated it has the name by which a JSON file beside the table
    begins: ``{"format": "rungwise <name>"``.

    A table that was only found in the folder is left out where it cannot be read, lacks a column, names no picture of
    the folder, or names pictures that another one names too (that which names more is read, then the nearest to the
    top); tables that tell different splits may name the same pictures. What is left out becomes an issue of the folder.

    Args:
        paths: The tables.
        files: The folder with the pictures.
        captions_only: Do not look for pictures; any name is taken.
        asked: The user gave these tables, so that a fault in one of them is an error.

    Returns:
        None if no table that was only found can be read.

    Raises:
        UserError: If a table that was asked for is empty, in another encoding or malformed, a column is missing, or no
            caption names a picture.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "a.jpg").touch()
    >>> _ = (root / "captions.csv").write_text("file,text,split\na.jpg,A dog.,train\nb.jpg,A cat.,train\n")
    >>> _ = (root / "taxes.csv").write_text("year,sum\n2025,100\n")
    >>> files = PictureFolder(root)
    >>> data = read_tables([root / "captions.csv", root / "taxes.csv"], files, asked=False)
    >>> data.captions, data.splits, data.issues[0].detail
    (('A dog.',), ('train',), "no picture named 'b.jpg'; left out: 'A cat.'")
    >>> [(issue.kind, issue.where) for issue in files.issues]
    [('table left out', 'taxes.csv')]
    """
    candidates = _asked_for(paths, files) if asked else _sound(paths, files)
    usable = candidates.copy() if asked else _goes_together(candidates, files, captions_only)
    _share_ids(usable, files)
    while usable:
        unread = {one.table.path: one.named for one in candidates if one not in usable}
        gatherer = Gatherer(None if captions_only else files, strict=asked, elsewhere=named_by_path(unread))
        try:
            for one in usable:
                _gather(gatherer, one)
        except UserError as error:
            if asked:
                raise
            usable.remove(one)
            leave_out(files, one.table.path, error, _LEFT)
            continue
        simple = all(one.table.path.suffix.lower() == JSON_SUFFIX for one in usable)
        try:
            return gatherer.collection(folder_name(files.root), "json" if simple else _layout(files))
        except UserError as error:
            if asked:
                raise
            for one in usable:
                leave_out(files, one.table.path, str(error), _LEFT)
            break
    return None


class _Candidate:
    """A table that has the columns of pictures and captions, and the pictures that it names.

    Attributes:
        table: The table.
        folder: Its folder below that of the collection; ``.`` where it lies beside or above.
        split: The split that its name tells, else its folder; None if neither does.
        own: It names pictures of its own folder below that of the collection, and those of that folder alone.
        found: Each name in the table, with the pictures that it may mean.
        named: What the table names, to compare it with others: pictures, or ids where no pictures are there, each with
            whether that is the picture's path.
        base: The folder from which its names are paths.
        common: The folder that ids of pictures leave out, as the names of the other tables leave it out.
        taken: Names in other tables, which are no ids here.
        by_path: Its names are no ids, since another table calls other pictures so.
    """

    def __init__(self, table: Table, files: PictureFolder) -> None:
        self.table, self._files = table, files
        place = table.path.parent
        self.folder = place.relative_to(files.root) if place.is_relative_to(files.root) else Path()
        of_folders = (split_in_file_name(Path(part)) for part in reversed(self.folder.parts))
        self._split_of_folder = next((split for split in of_folders if split), None)
        of_name = split_in_file_name(table.path)
        self.split = of_name or self._split_of_folder
        # The pictures of val.csv may all lie in train/; where there is a folder val/, they lie there.
        has_folder = of_name is not None and any(of_name in _splits(one) for one in {p.parent for p in files.pictures})
        self._searched = self._split_of_folder or (of_name if has_folder else None)
        self._within = files.within(self.folder) if self.folder.parts else files
        column = table.column(IMAGE_COLUMNS)
        cells = (row.get(str(column)) for _, row in table.rows if not isinstance(row, str))
        names = dict.fromkeys(name for cell in cells if (name := _name(cell)))
        published = table.path.stem.lower() == _METADATA and table.column((_FILE_NAME,)) is not None
        # As the layout is published its names are whole paths, where others leave out folders or endings.
        find = self._exactly if published else self._inside
        inside = {name: find(name) for name in names} if self.folder.parts else {}
        self.own = bool(inside) and (published or any(inside.values()))
        self.found = inside if self.own else {name: self._anywhere(name) for name in names}
        self.base, self.named = pictures_named(self.found, self._within.root if self.own else files.root, files.root)
        self.common, self.taken, self.by_path = files.root, frozenset[str](), self.own

    def find(self, name: str) -> Sequence[Path]:
        """The pictures that the table may mean by a name of its own."""
        return self.found.get(name, ())

    def identify(self, name: str) -> str:
        """The id of the picture that the table calls by this name."""
        if not (self.own or self.by_path):
            return name
        found = self.found.get(name, ())
        for folder in (self.common, self._files.root):
            if len(found) == 1 and found[0].is_relative_to(folder):
                image_id = picture_id(found[0].relative_to(folder))
                if image_id not in self.taken or folder == self._files.root:
                    return image_id
        return f"{self.folder.as_posix() if self.own else self.table.path.stem}/{name}"

    def _inside(self, name: str) -> Sequence[Path]:
        """The pictures of the table's own folder that a name may mean, or the one elsewhere to which its path leads."""
        relative = PurePosixPath(name.replace("\\", "/"))
        if ".." in relative.parts:
            return self._away(name)
        return (self._away(name) if Path(name).is_absolute() else ()) or self._within.find(name)

    def _exactly(self, name: str) -> Sequence[Path]:
        """The picture whose path from the table's own folder, or from the whole one, is this name."""
        whole = [path for path in self._files.exact(name) if path.is_relative_to(self._within.root)]
        return self._within.exact(name) or whole or self._away(name)

    def _away(self, name: str) -> Sequence[Path]:
        """The picture to which a path leads from the table's own folder."""
        straight = Path(os.path.normpath(self._within.root / name)).absolute()
        if straight.suffix.lower() not in PICTURE_SUFFIXES or not self._files.is_there(straight):
            return ()
        return self._files.find(str(straight))

    def _anywhere(self, name: str) -> Sequence[Path]:
        """The pictures of the whole folder that a name may mean, those of another split's folder left out."""
        found, root = self._files.find(name), self._files.root
        found = [path for path in found if not in_another_split(path, root, self._searched, name)]
        if self._searched is not None and len(found) > 1:
            inside = [path for path in found if path.is_relative_to(root)]
            found = [path for path in inside if self._searched in _splits(path.relative_to(root).parent)] or found
        return one_of_copies(found)


def _splits(folder: Path) -> set[str]:
    """The splits that the parts of a folder's path tell."""
    return {split for part in folder.parts if (split := split_in_file_name(Path(part)))}


def _asked_for(paths: Sequence[Path], files: PictureFolder) -> list[_Candidate]:
    tables = [read_table(path) for path in paths]
    for table in tables:
        if missing := missing_columns(table):
            raise UserError(f"{table.path}: {missing}; rename or add one")
    return [_Candidate(table, files) for table in tables]


def _sound(paths: Sequence[Path], files: PictureFolder) -> list[_Candidate]:
    """The tables that can be read and have the columns; the others are left out."""
    found = []
    for path in paths:
        try:
            head = _columns_of_large(path, files)
            missing = "" if head is None else missing_columns(Table(path, head, []))
            table = None if missing else read_table(path, lenient=True)
        except UserError as error:
            leave_out(files, path, error, _LEFT)
            continue
        if table is None or (missing := missing_columns(table)):
            leave_out(files, path, missing, _LEFT)
        else:
            found.append(_Candidate(table, files))
    return found


def _columns_of_large(path: Path, files: PictureFolder) -> tuple[str, ...] | None:
    """The columns at the beginning of a file that is large, which is not read to the end for nothing; None if small."""
    suffix = path.suffix.lower()
    if suffix in (".parquet", JSON_SUFFIX) or require_regular(path, "text_bytes") < _LARGE:
        return None
    head = files.head(path.relative_to(files.root), _LARGE_HEAD)
    text, *rest = head.decode("utf-8-sig", "replace").split("\n")
    if suffix not in (".jsonl", ".ndjson"):
        # A header in another encoding, or with a line break in it, is left to the reader.
        return columns_of(path, text) if rest and text.isascii() and text.count('"') % 2 == 0 else None
    columns: dict[str, None] = {}
    for line in (text, *rest)[: len(rest)]:  # the last one may be cut
        cells = parse_json(line, path, finite=False) if line.strip() else None
        columns.update(dict.fromkeys(cells if isinstance(cells, dict) else ()))
    return tuple(columns) if rest else None


def _goes_together(candidates: list[_Candidate], files: PictureFolder, captions_only: bool) -> list[_Candidate]:
    """The tables that name pictures of the folder and do not contradict each other; the others are left out.

    A name that only resembles a picture is no rival to its path: of these two the path counts, picture by picture.
    """
    naming = [one for one in candidates if one.named]
    if naming or (files.pictures and not captions_only):
        for one in candidates:
            if not one.named:
                leave_out(files, one.table.path, _why_none(one), _LEFT)
    else:
        naming = [one for one in candidates if one.found]
        names = [name for one in naming for name in one.found]
        if len(set(names)) < len(names):  # pictures of several folders, each called by its name there
            for one in naming:
                one.own = bool(one.folder.parts)
        for one in naming:
            one.named = {(one.identify(name), True) for name in one.found}
    of_table = claims({one: one.named for one in naming})
    taken: dict[object, list[_Candidate]] = {}
    left = set()
    for one in sorted(naming, key=_precedence):
        named, rival = of_table[one]
        rivals = [
            other for picture in named for other in taken.get(picture, ())
            if one.split is None or other.split is None or one.split == other.split
        ]  # fmt: skip
        if rival := rival or next(iter(rivals), None):
            left.add(one)
            other = readable_name(rival.table.path.relative_to(files.root))
            leave_out(
                files, one.table.path, f"names pictures that {other} names too; that one is read", _LEFT, instead=True
            )
            continue
        for picture in named:
            taken.setdefault(picture, []).append(one)
    return [one for one in naming if one not in left]


def _share_ids(candidates: list[_Candidate], files: PictureFolder) -> None:
    """Let the ids of all tables leave out the same folder, so that another table does not change ids.

    Where two tables call different pictures by one name, their ids are paths.
    """
    others = [one for one in candidates if not one.own]
    taken = frozenset(name for one in others for name in one.found)
    full = ((f"/{name}", paths[0].as_posix()) for one in others for name, paths in one.found.items() if len(paths) == 1)
    left = {path.removesuffix(name) if path.endswith(name) else "" for name, path in full}
    common = Path(next(iter(left))) if len(left) == 1 and "" not in left else files.root
    first: dict[str, tuple[_Candidate, Sequence[Path]]] = {}
    for one in candidates:
        one.common, one.taken = common, taken
        for name, paths in () if one.own else one.found.items():
            other, theirs = first.setdefault(name, (one, paths))
            if theirs != paths:
                one.by_path = other.by_path = True


def _why_none(one: _Candidate) -> str:
    name, paths = next(((name, paths) for name, paths in one.found.items() if paths), ("", ()))
    if paths:
        return f"names no picture of the folder that is the only one of its name ({shown(name)} may be {len(paths)})"
    first = next(iter(one.found), None)
    return (
        "no row names a picture" if first is None else f"names no picture of the folder (the first is {shown(first)})"
    )


def _precedence(one: _Candidate) -> tuple[object, ...]:
    """Of tables that name the same pictures the one to read comes first."""
    path, elsewhere = one.table.path, bool(one.folder.parts) and not one.own
    return -len(one.named), elsewhere, len(one.folder.parts), len(path.name), str(path)


def _layout(files: PictureFolder) -> str:
    for path in files.others:
        head = files.head(path, _HEAD_BYTES) if path.suffix == ".json" and len(path.parts) == 1 else b""
        if named := _NAMED_FORMAT.match(head):
            return named[1].decode()
    return "table"


def _gather(gatherer: Gatherer, candidate: _Candidate) -> None:
    table = candidate.table
    image_column, caption_column = table.column(IMAGE_COLUMNS), table.caption_column
    optional = {what: table.column(names) for what, names in OPTIONAL_COLUMNS.items()}
    assert image_column is not None
    assert caption_column is not None
    consumed = {image_column, optional["split"], optional["caption_id"]}
    if caption_column == table.column((COMMENT,)):
        consumed.add(table.column((NUMBER_OF_COMMENT,)))
    if caption_column != table.column((TITLE,)):
        consumed.add(caption_column)
    further = [column for column in dict.fromkeys(table.columns) if column not in consumed]
    for place, cells in table.rows:
        where = f"{table.path}, {place}"
        if isinstance(cells, str):
            gatherer.issue("malformed row", where, cells)
            continue
        given = {what: cells.get(column) for what, column in optional.items() if column is not None}
        try:
            reference = _text(cells.get(image_column), image_column)
            texts = [text for cell in _texts(cells.get(caption_column), caption_column) for text in texts_in(cell)]
            split = _text(given.get("split"), "split") or candidate.split or ""
            labels = _labels(given)
            caption_id = _text(given.get("caption_id"), "caption_id") or None
        except TypeError as error:
            gatherer.issue("malformed row", where, f"{error}{left_out(_every_text(cells))}")
            continue
        if not reference.strip():
            gatherer.issue("missing picture", where, f"the row names no picture{left_out(texts)}")
            continue
        image = gatherer.image(
            candidate.identify(reference), where, reference, find=candidate.find, base=candidate.base, captions=texts
        )
        if image is None:
            continue
        gatherer.split(image, split, where)
        gatherer.label(image, labels, where)
        for column in further:
            gatherer.column(image, column, cells.get(column), where, parse=not table.typed)
        for text in texts:
            gatherer.caption(image, text, where, caption_id if len(texts) == 1 else None)


def _labels(given: Cells) -> list[str]:
    several = given.get("labels")
    if isinstance(several, str):
        several = several.split(_LABEL_SEPARATOR)
    named = [*_texts(given.get("label"), "label"), *_texts(several, "labels")]
    return [label.strip() for label in named if label.strip()]


def _texts(cell: object, column: str) -> list[str]:
    return [_text(one, column) for one in cell] or [""] if isinstance(cell, list) else [_text(cell, column)]


def _every_text(cells: Cells) -> list[str]:
    """What a malformed row says, for its issue."""
    return [_name(one) for cell in cells.values() for one in (cell if isinstance(cell, list) else [cell])]


def _name(cell: object) -> str:
    """The text of a cell; empty where it holds something else."""
    try:
        text = _text(cell, "")
    except TypeError:
        return ""
    return text if text.strip() else ""


def _text(cell: object, column: str) -> str:
    """The text of a cell; a TypeError if it is something else."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    # Whole numbers become floats where a column of a data frame had gaps.
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return "" if cell != cell else str(cell)
    raise TypeError(f"column {column!r} holds a {type(cell).__name__}, not a text; convert it")


def _has_header(files: PictureFolder, path: Path) -> bool:
    head = files.head(path, 4096).decode("utf-8-sig", "replace")
    return not missing_columns(Table(path, columns_of(path, head), []))
