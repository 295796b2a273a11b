"""Captions in a table beside the pictures: CSV, TSV, JSON lines, simple JSON or Parquet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rungwise.core import UserError, parse_json
from rungwise.data._collection import ImageCaptions, Issue
from rungwise.data.files import opened_parquet, read_lines, read_text
from rungwise.data.layouts._folder import PictureFolder, folder_name, readable_name
from rungwise.data.layouts._gatherer import Gatherer, split_in_file_name
from rungwise.data.layouts._json_captions import SUFFIX as JSON_SUFFIX
from rungwise.data.layouts._json_captions import (
    is_json_captions,
    json_files,
    looks_like_captions,
    read_json_rows,
    why_not,
)

TABLE_SUFFIXES = frozenset({".csv", ".tsv", ".jsonl", ".ndjson", ".parquet"})
"""Lower-case file extensions that count as tables."""

IMAGE_COLUMNS = (
    "image", "file", "filename", "file_name", "path", "filepath", "file_path", "image_path", "image_file",
    "image_name", "picture", "photo", "img", "image_id",
)  # fmt: skip
"""Names of the column of the picture's name; the first present one counts."""

_TITLE = "title"
CAPTION_COLUMNS = ("caption", "captions", "text", "texts", "sentence", "sentences", "description", "raw", _TITLE)
"""Names of the column of the caption, or in JSON and Parquet of a list of captions; the first present one counts."""

_OPTIONAL = {
    "split": ("split", "subset"),
    "label": ("label", "class", "category"),
    "labels": ("labels", "classes", "categories"),
    "caption_id": ("caption_id", "captionid", "sentid", "sentence_id"),
}
_SPREADSHEETS = frozenset({".xlsx", ".xls", ".ods", ".numbers"})
_LABEL_SEPARATOR = ";"
_NAMED_FORMAT = re.compile(rb'\s*\{\s*"format":\s*"rungwise (\w+)"')
_HEAD_BYTES = 256
_DELIMITERS = (",", ";", "\t")
_SAID_DELIMITER = re.compile("sep=([,;\t|])\\r?\\n")
"""The line above the header by which spreadsheets tell each other the delimiter."""

Cells = Mapping[str, object]


@dataclass(frozen=True)
class Table:
    """A table as it stands in its file, each row with its place for messages.

    Attributes:
        path: The file.
        columns: Names as written, in order.
        rows: Place (``"line 3"``) and cells by column; a text in place of the cells is the reason to skip the row.
        typed: Cells have types: numbers, truth values and lists; False where all are texts.
    """

    path: Path
    columns: tuple[str, ...]
    rows: list[tuple[str, Cells | str]]
    typed: bool = True

    def column(self, names: Sequence[str]) -> str | None:
        """The column that has the first of these names, as written; case and outer blanks do not matter."""
        written = {column.strip().lower(): column for column in reversed(self.columns)}
        return next((written[name] for name in names if name in written), None)


def table_files(files: PictureFolder) -> list[Path]:
    r"""The tables nearest to the top of a folder, and texts that begin with a table's header."""
    found = [
        path
        for path in files.others
        if path.suffix.lower() in TABLE_SUFFIXES or (path.suffix.lower() == ".txt" and _has_header(files, path))
    ]
    depth = min((len(path.parts) for path in found), default=0)
    return [files.root / path for path in found if len(path.parts) == depth]


def json_tables(files: PictureFolder) -> list[Path]:
    """The files nearest to the top of a folder that hold captions in simple JSON."""
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


def read_tables(paths: Sequence[Path], files: PictureFolder, captions_only: bool = False) -> ImageCaptions:
    r"""Captions of one table, or of several whose names tell different splits (``train.csv``, ``val.csv``).

    Needed are a column of :data:`IMAGE_COLUMNS` and one of :data:`CAPTION_COLUMNS`. Optional are ``split``,
    ``caption_id``, ``label`` (one) and ``labels`` (a list, or texts joined by ``;``). Labels and every further column
    are carried (:mod:`rungwise.data._columns`). Image ids are the names in the image column. The layout is ``"table"``,
    or ``"json"`` of simple JSON; in a folder that rungwise generated it has the name by which a JSON file beside the
    table begins: ``{"format": "rungwise <name>"``.

    Raises:
        UserError: If a file is empty, in another encoding or malformed, a column is missing, several tables do not go
            together, or no caption names a picture.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "a.jpg").touch()
    >>> _ = (root / "captions.csv").write_text("file,text,split\na.jpg,A dog.,train\nb.jpg,A cat.,train\n")
    >>> data = read_tables([root / "captions.csv"], PictureFolder(root))
    >>> data.captions, data.splits, data.issues[0].detail
    (('A dog.',), ('train',), "no picture named 'b.jpg'")
    """
    gatherer = Gatherer(None if captions_only else files)
    usable = []
    lacking = []
    for table in map(read_table, paths):
        if missing := _missing_columns(table):
            lacking.append(f"{table.path}: {missing}")
            gatherer.issue("table without captions", str(table.path), missing)
        else:
            usable.append(table)
    if not usable:
        raise UserError(lacking[0])
    splits = [split_in_file_name(table.path) for table in usable]
    if len(usable) > 1 and (None in splits or len(set(splits)) < len(splits)):
        names = ", ".join(table.path.name for table in usable[:4])
        raise UserError(f"{files.root}: {len(usable)} tables of captions ({names}); give the one to read")
    for table, split in zip(usable, splits, strict=True):
        _gather(gatherer, table, split)
    simple = all(path.suffix.lower() == JSON_SUFFIX for path in paths)
    return gatherer.collection(folder_name(files.root), "json" if simple else _layout(files))


def read_table(path: Path, *, by_lines: bool = False) -> Table:
    r"""Any table, read by its extension; in text files the header decides between comma, semicolon and tab.

    Args:
        path: The file.
        by_lines: Prefer lines to quotation marks: where every line of a text with tabs has as many cells as the header,
            quotation marks join no lines, since no cell is expected to hold a tab and a line end.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "captions.jsonl"
    >>> _ = file.write_text('{"image": "a.jpg", "caption": "A dog."}\n')
    >>> read_table(file).rows
    [('line 1', {'image': 'a.jpg', 'caption': 'A dog.'})]
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return _read_parquet(path)
    if suffix in (".jsonl", ".ndjson"):
        return _read_json_lines(path)
    if suffix == JSON_SUFFIX:
        return Table(path, *read_json_rows(path, IMAGE_COLUMNS, CAPTION_COLUMNS))
    return _read_separated(path, by_lines)


def _layout(files: PictureFolder) -> str:
    for path in files.others:
        head = files.head(path, _HEAD_BYTES) if path.suffix == ".json" and len(path.parts) == 1 else b""
        if named := _NAMED_FORMAT.match(head):
            return named[1].decode()
    return "table"


def _gather(gatherer: Gatherer, table: Table, split_of_file: str | None) -> None:
    image_column, caption_column = table.column(IMAGE_COLUMNS), table.column(CAPTION_COLUMNS)
    optional = {what: table.column(names) for what, names in _OPTIONAL.items()}
    assert image_column is not None
    assert caption_column is not None
    consumed = {image_column, optional["split"], optional["caption_id"]}
    if caption_column != table.column((_TITLE,)):  # a filter asks for titles by their name
        consumed.add(caption_column)
    further = [column for column in dict.fromkeys(table.columns) if column not in consumed]
    for place, cells in table.rows:
        where = f"{table.path}, {place}"
        if isinstance(cells, str):
            gatherer.issue("malformed row", where, cells)
            continue
        reference = _text(cells.get(image_column), image_column, where)
        if not reference.strip():
            gatherer.issue("missing picture", where, "the row names no picture")
            continue
        image = gatherer.image(reference, where)
        if image is None:
            continue
        given = {what: cells.get(column) for what, column in optional.items() if column is not None}
        split = _text(given.get("split"), "split", where) or split_of_file or ""
        gatherer.split(image, split, where)
        gatherer.label(image, _labels(given, where), where)
        for column in further:
            gatherer.column(image, column, cells.get(column), where, parse=not table.typed)
        texts = _texts(cells.get(caption_column), caption_column, where)
        caption_id = _text(given.get("caption_id"), "caption_id", where) or None
        for text in texts:
            gatherer.caption(image, text, where, caption_id if len(texts) == 1 else None)


def _missing_columns(table: Table) -> str:
    needs = [
        f"{what} column (such as {names[0]}, {names[1]} or {names[2]})"
        for what, names in (("an image", IMAGE_COLUMNS), ("a caption", CAPTION_COLUMNS))
        if table.column(names) is None
    ]
    if not needs:
        return ""
    found = ", ".join(table.columns[:10]) or "none"
    remedy = "rename or add one, or move the table away if it holds no captions"
    return f"needs {' and '.join(needs)}, found the columns {found}; {remedy}"


def _labels(given: Cells, where: str) -> list[str]:
    several = given.get("labels")
    if isinstance(several, str):
        several = several.split(_LABEL_SEPARATOR)
    named = [*_texts(given.get("label"), "label", where), *_texts(several, "labels", where)]
    return [label.strip() for label in named if label.strip()]


def _texts(cell: object, column: str, where: str) -> list[str]:
    if isinstance(cell, list):
        return [_text(one, column, where) for one in cell]
    return [_text(cell, column, where)]


def _text(cell: object, column: str, where: str) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    # Whole numbers become floats where a column of a data frame had gaps.
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return "" if cell != cell else str(cell)
    raise UserError(f"{where}: column {column!r} holds a {type(cell).__name__}, not a text; convert it")


def _has_header(files: PictureFolder, path: Path) -> bool:
    head = files.head(path, 4096).decode("utf-8-sig", "replace")
    header = _header(head, _delimiter(path, head))
    return not _missing_columns(Table(path, header, []))


def _read_separated(path: Path, by_lines: bool) -> Table:
    text = read_text(path)
    delimiter = _delimiter(path, text)
    try:
        quoted = _parse_separated(path, text, delimiter, csv.QUOTE_MINIMAL)
    except UserError:
        # Most TSV is written without quoting, so a quotation mark is just one; in CSV it is a mistake.
        if delimiter != "\t":
            raise
        return _parse_separated(path, text, delimiter, csv.QUOTE_NONE)
    if by_lines and delimiter == "\t":
        # Marks that begin a cell of one line and end one of another would swallow the lines between them.
        plain = _parse_separated(path, text, delimiter, csv.QUOTE_NONE)
        if len(plain.rows) > len(quoted.rows) and not any(isinstance(cells, str) for _, cells in plain.rows):
            return plain
    return quoted


def _delimiter(path: Path, text: str) -> str:
    """The delimiter by which the header has the columns that are needed, or else most columns.

    Spreadsheets write semicolons where a comma stands in numbers, and may say so in a line above the header.
    """
    if path.suffix.lower() == ".tsv":
        return "\t"
    if said := _SAID_DELIMITER.match(text):
        return said[1]
    found = {delimiter: _header(text, delimiter) for delimiter in _DELIMITERS}
    whole = (delimiter for delimiter, columns in found.items() if not _missing_columns(Table(path, columns, [])))
    return next(whole, max(_DELIMITERS, key=lambda delimiter: len(found[delimiter])))


def _header(text: str, delimiter: str) -> tuple[str, ...]:
    """The names in the first line of a table; the line split at every delimiter if its quotation marks are wrong."""
    first = _SAID_DELIMITER.sub("", text, count=1).partition("\n")[0].rstrip("\r")
    try:
        return tuple(next(csv.reader([first], delimiter=delimiter, strict=True), ()))
    except csv.Error:
        return tuple(first.split(delimiter))


def _parse_separated(path: Path, text: str, delimiter: str, quoting: Literal[0, 3]) -> Table:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True)
    columns: tuple[str, ...] = ()
    rows: list[tuple[str, Cells | str]] = []
    says_delimiter = _SAID_DELIMITER.match(text) is not None
    for line, cells in numbered_records(path, reader):
        if says_delimiter and line == 1:
            continue
        if not columns:
            columns = tuple(cells)
        elif len(cells) == len(columns):
            rows.append((f"line {line}", dict(zip(columns, cells, strict=True))))
        else:
            sign = {",": "a comma", ";": "a semicolon"}.get(delimiter, "")
            hint = f"; put texts that hold {sign} in quotes" if len(cells) > len(columns) and sign else ""
            rows.append((f"line {line}", f"{len(cells)} columns but the header has {len(columns)}{hint}"))
    return Table(path, columns, rows, typed=False)


def numbered_records(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Each record of a CSV reader with the line on which it begins; blank lines are left out.

    Args:
        path: Path of the file, for messages.
        reader: A reader that :func:`csv.reader` made.
    """
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(f"{path}, line {line}: {error}; correct the quotation marks from there on") from error
        if cells:
            yield line, cells


def _read_json_lines(path: Path) -> Table:
    columns: dict[str, None] = {}
    rows: list[tuple[str, Cells | str]] = []
    for number, line in read_lines(path):
        # Programs that lack a value write NaN for it, which counts as an empty cell.
        cells = parse_json(line, f"{path}, line {number}", finite=False)
        if not isinstance(cells, dict):
            raise UserError(f"{path}, line {number}: not a JSON object; write {{...}} on each line")
        columns.update(dict.fromkeys(cells))
        rows.append((f"line {number}", cells))
    return Table(path, tuple(columns), rows)


def _is_small(kind: Any) -> bool:
    """Whether a column of Parquet holds texts, numbers, dates or lists of texts, in any encoding."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_list(kind) or types.is_large_list(kind):
        return bool(types.is_string(kind.value_type) or types.is_large_string(kind.value_type))
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind) or types.is_floating(kind)
        or types.is_boolean(kind) or types.is_decimal(kind) or types.is_date(kind) or types.is_timestamp(kind)
        or types.is_null(kind)
    )  # fmt: skip


def _read_parquet(path: Path) -> Table:
    with opened_parquet(path) as file:
        columns = tuple(file.schema.names)
        # A data frame may hold the pictures' bytes or their vectors besides; they are not read into memory.
        known = {*IMAGE_COLUMNS, *CAPTION_COLUMNS, *(name for names in _OPTIONAL.values() for name in names)}
        read = [
            name
            for name, kind in zip(columns, file.schema.types, strict=True)
            if name.strip().lower() in known or (_is_small(kind) and columns.count(name) == 1)
        ]
        rows: list[tuple[str, Cells | str]] = [
            (f"row {number}", row) for number, row in enumerate(file.rows(read), start=1)
        ]
    return Table(path, columns, rows)
