"""A table as it stands in its file: CSV, TSV, JSON lines, simple JSON or Parquet, read by its extension."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rungwise.core import UserError, parse_json
from rungwise.core.output import short_repr
from rungwise.data.files import QuotationError, opened_parquet, read_lines, read_text, separated_records
from rungwise.data.layouts._gatherer import left_out
from rungwise.data.layouts._json_captions import SUFFIX as JSON_SUFFIX
from rungwise.data.layouts._json_captions import read_json_rows

IMAGE_COLUMNS = (
    "image", "file", "filename", "file_name", "path", "filepath", "file_path", "image_path", "image_file",
    "image_name", "picture", "photo", "img", "image_id",
)  # fmt: skip
"""Names of the column of the picture's name; the first present one counts."""

TITLE = "title"
"""The name of captions that is a column too, since a filter asks for titles by their name."""
CAPTION_COLUMNS = (
    "caption", "captions", "text", "texts", "txt", "sentence", "sentences", "description", "raw", TITLE,
)  # fmt: skip
"""Names of the column of the caption, or in JSON and Parquet of a list of captions; the first present one counts."""

OPTIONAL_COLUMNS = {
    "split": ("split", "subset"),
    "label": ("label", "class", "category"),
    "labels": ("labels", "classes", "categories"),
    "caption_id": ("caption_id", "captionid", "sentid", "sentence_id"),
}
"""Names of the columns that a table may have besides, by what they say."""
COMMENT, NUMBER_OF_COMMENT = "comment", "comment_number"
"""Columns of the table of Flickr30k, ``image_name| comment_number| comment``."""

_PIPE = "|"
_DELIMITERS = (",", ";", "\t", _PIPE)
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

    __repr__ = short_repr

    @property
    def caption_column(self) -> str | None:
        """The column of captions, as written; in the table of Flickr30k it is called ``comment``."""
        numbered = self.column((NUMBER_OF_COMMENT,)) is not None
        return self.column(CAPTION_COLUMNS) or (self.column((COMMENT,)) if numbered else None)

    def column(self, names: Sequence[str]) -> str | None:
        """The column that has the first of these names, as written; case and outer blanks do not matter."""
        written = {column.strip().lower(): column for column in reversed(self.columns)}
        return next((written[name] for name in names if name in written), None)


def read_table(path: Path, *, by_lines: bool = False, lenient: bool = False) -> Table:
    r"""Any table, read by its extension; in text files the header decides between comma, semicolon, tab and ``|``.

    Args:
        path: The file.
        by_lines: Prefer lines to quotation marks: where every line of a text with tabs has as many cells as the header,
            quotation marks join no lines, since no cell is expected to hold a tab and a line end.
        lenient: A line that is no JSON is a row to skip, and no error.

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
        return _read_json_lines(path, lenient)
    if suffix == JSON_SUFFIX:
        return Table(path, *read_json_rows(path, IMAGE_COLUMNS, CAPTION_COLUMNS))
    return _read_separated(path, by_lines)


def columns_of(path: Path, text: str) -> tuple[str, ...]:
    """The names in the first line of a text whose cells are separated."""
    return _header(text, _delimiter(path, text))


def missing_columns(table: Table) -> str:
    """Which column of pictures or captions a table lacks, and which it has; empty if it lacks none."""
    if not table.columns and table.rows:  # no row is one
        place, why = table.rows[0]
        return f"{place}: {why}"
    needs = [
        f"{what} column (such as {names[0]}, {names[1]} or {names[2]})"
        for what, names, column in (
            ("an image", IMAGE_COLUMNS, table.column(IMAGE_COLUMNS)),
            ("a caption", CAPTION_COLUMNS, table.caption_column),
        )
        if column is None
    ]
    if not needs:
        return ""
    found = ", ".join(table.columns[:10]) or "none"
    return f"needs {' and '.join(needs)}, found the columns {found}"


def parts_of_column(name: str, kind: Any) -> Iterator[tuple[str, bool]]:
    """The paths of a column of Parquet to all that its structures hold, each with whether that may be a column.

    These are texts, numbers, truth values, dates and lists of texts, in any encoding.
    """
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_struct(kind):
        for at in range(kind.num_fields):
            yield from parts_of_column(f"{name}.{kind.field(at).name}", kind.field(at).type)
        return
    if types.is_list(kind) or types.is_large_list(kind):
        is_small = types.is_string(kind.value_type) or types.is_large_string(kind.value_type)
    else:
        is_small = (
            types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind) or types.is_floating(kind)
            or types.is_boolean(kind) or types.is_decimal(kind) or types.is_date(kind) or types.is_timestamp(kind)
            or types.is_null(kind)
        )  # fmt: skip
    yield name, is_small


def _read_separated(path: Path, by_lines: bool) -> Table:
    text = read_text(path)
    delimiter = _delimiter(path, text)
    try:
        quoted = _parse_separated(path, text, delimiter, quoted=True)
    except QuotationError:
        # Most of what tabs separate is written without quoting, so a mark is just one; with commas it is a mistake.
        if delimiter not in ("\t", _PIPE):
            raise
        return _parse_separated(path, text, delimiter, quoted=False)
    if delimiter == _PIPE or (by_lines and delimiter == "\t"):
        # Marks that begin a cell of one line and end one of another would swallow the lines between them.
        plain = _parse_separated(path, text, delimiter, quoted=False)
        whole, of_quoted = (sum(not isinstance(cells, str) for _, cells in one.rows) for one in (plain, quoted))
        if whole > of_quoted if delimiter == _PIPE else whole == len(plain.rows) > len(quoted.rows):
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
    whole = (delimiter for delimiter, columns in found.items() if not missing_columns(Table(path, columns, [])))
    return next(whole, max(_DELIMITERS, key=lambda delimiter: len(found[delimiter])))


def _header(text: str, delimiter: str) -> tuple[str, ...]:
    """The names in the first line of a table; the line split at every delimiter if its quotation marks are wrong."""
    first = _SAID_DELIMITER.sub("", text, count=1).partition("\n")[0].rstrip("\r")
    try:
        return tuple(next(csv.reader([first], delimiter=delimiter, strict=True), ()))
    except csv.Error:
        return tuple(first.split(delimiter))


def _parse_separated(path: Path, text: str, delimiter: str, *, quoted: bool) -> Table:
    columns: tuple[str, ...] = ()
    twice: dict[str, list[int]] = {}
    rows: list[tuple[str, Cells | str]] = []
    says_delimiter = _SAID_DELIMITER.match(text) is not None
    for line, cells in separated_records(path, text, delimiter, quoted=quoted):
        if says_delimiter and line == 1:
            continue
        if delimiter == _PIPE:  # written with blanks around it
            cells = [cell.strip() for cell in cells]
        if not columns:
            columns = tuple(cells)
            places: dict[str, list[int]] = {}
            for place, name in enumerate(columns):
                places.setdefault(name, []).append(place)
            twice = {name: held for name, held in places.items() if len(held) > 1}
        elif len(cells) == len(columns):
            named: dict[str, object] = dict(zip(columns, cells, strict=True))
            named |= {name: [cells[place] for place in held] for name, held in twice.items()}
            rows.append((f"line {line}", named))
        else:
            sign = {",": "a comma", ";": "a semicolon"}.get(delimiter, "")
            hint = f"; put texts that hold {sign} in quotes" if len(cells) > len(columns) and sign else ""
            rows.append(
                (
                    f"line {line}",
                    f"{len(cells)} columns but the header has {len(columns)}{hint}{left_out([delimiter.join(cells)])}",
                )
            )
    return Table(path, columns, rows, typed=False)


def _read_json_lines(path: Path, lenient: bool) -> Table:
    columns: dict[str, None] = {}
    rows: list[tuple[str, Cells | str]] = []
    for number, line in read_lines(path):
        # Programs that lack a value write NaN for it, which counts as an empty cell.
        where = f"{path}, line {number}"
        try:
            cells = parse_json(line, where, finite=False, join_texts=True)
        except UserError as error:
            if not lenient:
                raise
            why = str(error).removeprefix(f"{where}: ").rpartition("; ")[0]
            rows.append((f"line {number}", f"{why}{left_out([line])}"))
            continue
        if not isinstance(cells, dict):
            rows.append((f"line {number}", f"not a JSON object; write {{...}} on each line{left_out([line])}"))
            continue
        columns.update(dict.fromkeys(cells))
        rows.append((f"line {number}", cells))
    return Table(path, tuple(columns), rows)


def _read_parquet(path: Path) -> Table:
    with opened_parquet(path) as file:
        columns = tuple(file.schema.names)
        # A data frame may hold the pictures' bytes or their vectors besides; they are not read into memory.
        known = {*IMAGE_COLUMNS, *CAPTION_COLUMNS, *(name for names in OPTIONAL_COLUMNS.values() for name in names)}
        read = [
            place
            for name, kind in zip(columns, file.schema.types, strict=True)
            if name.strip().lower() in known or columns.count(name) == 1
            for place, is_small in ([(name, True)] if name.strip().lower() in known else parts_of_column(name, kind))
            if is_small
        ]
        rows: list[tuple[str, Cells | str]] = [
            (f"row {number}", row) for number, row in enumerate(file.rows(read), start=1)
        ]
    return Table(path, columns, rows)
