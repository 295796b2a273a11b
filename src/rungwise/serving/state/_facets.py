"""Columns of pictures as filters offer them: their types, the numbers of pictures, and the values that can be found.

Every number is one of all pictures, or it is said that it is about so: where a store counted rows drawn at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

from rungwise.core.text import normalised
from rungwise.index.stores import ColumnCounts, StoreCounts
from rungwise.serving.schemas.responses import ColumnType, ColumnValue, IndexColumn

_LISTED = 30
"""Number of values that are listed with a column; the others are searched for."""
_LONGEST_LISTED = 60
_FOLDER, _CAPTIONS = "folder", "captions"
_REPEATED = 1.5
"""Mean number of pictures per value from which on values are listed."""
_EXAMPLES = 3
_EXACT = 1 << 53
"""Number up to which double precision holds every whole number."""
_TYPES: Mapping[str, ColumnType] = {
    "number": "number",
    "text": "text",
    "truth": "truth value",
    "list": "texts",
}


class Facets:
    """Columns of the pictures of an index, and the values of each with their numbers of pictures.

    Args:
        counts: What the store counted.
        before: Columns of some pictures, which give the order of columns and examples.

    Attributes:
        columns: Summaries of the columns.
        about: Whether numbers are about so.

    >>> from rungwise.index.stores import count_records
    >>> pets = [{"year": year, "kind": ["dog"]} for year in (2019, 2021)]
    >>> facets = Facets(StoreCounts(*count_records(pets, 10), of=2))
    >>> [(one.name, one.type, one.rows, one.least, one.most) for one in facets.columns]
    [('year', 'number', 2, 2019, 2021), ('kind', 'texts', 2, None, None)]
    >>> facets.values("kind", "d", k=5)
    ((ColumnValue(value='dog', rows=2, inner=False),), False)
    """

    def __init__(self, counts: StoreCounts, before: Sequence[IndexColumn] = ()) -> None:
        self.about = not counts.exact
        self._share = counts.of / max(1, counts.rows)
        self._values: dict[str, dict[str, int]] = {}
        self._inner: dict[str, list[str]] = {}
        by_name: dict[str, list[ColumnCounts]] = {}
        for one in counts.columns:
            if one.name != _CAPTIONS:
                by_name.setdefault(one.name, []).append(one)
        places = {column.name: place for place, column in enumerate(before)}
        examples = {column.name: column.examples for column in before}
        names = sorted(by_name, key=lambda name: places.get(name, len(places)))
        self.columns = tuple(self._column(name, by_name[name], examples.get(name, ())) for name in names)

    def values(
        self, column: str, contains: str = "", within: str | None = None, *, k: int
    ) -> tuple[tuple[ColumnValue, ...], bool]:
        """At most ``k`` values of a column, and whether there are more.

        Folders have the pictures of those below them, and stand in the order of their names. Of other columns the most
        frequent value comes first. What begins with the text comes before what merely has it in it.

        Args:
            column: Name of the column; one that has no values, or too many to be counted, gives none.
            contains: Text that a value has in it, in any case of letters.
            within: Folder whose inner folders are wanted, empty for the outermost ones; None for any value.
            k: Number of values at most.
        """
        rows = self._values.get(column, {})
        found = list(rows) if within is None else self._inner.get(within, []) if column == _FOLDER else []
        if sought := _folded(contains).strip():
            found = [one for one in found if sought in _folded(one)]
            # Of a folder the last name is what people know.
            found.sort(
                key=lambda one: not _folded(one.rpartition("/")[2] if column == _FOLDER else one).startswith(sought)
            )
        return tuple(self._value(column, one) for one in found[:k]), len(found) > k

    def _column(self, name: str, counts: Sequence[ColumnCounts], examples: tuple[str, ...]) -> IndexColumn:
        main = max(counts, key=lambda one: one.rows)
        is_date = main.dates and name != _FOLDER
        type_: ColumnType = "date" if is_date else _TYPES[main.type]
        repeated = sum(main.values.values()) >= _REPEATED * len(main.values)
        values: tuple[ColumnValue, ...] = ()
        more = False
        if name == _FOLDER and main.type == "text":
            self._values[name] = self._in_folders({str(one): rows for one, rows in main.values.items()})
            values, more = self.values(name, within="", k=_LISTED)
        elif main.complete and repeated:
            order = sorted(main.values, key=lambda one: (-main.values[one], one))
            self._values[name] = {_shown(one): main.values[one] for one in order}
            listed = [one for one in self._values[name] if len(one) <= _LONGEST_LISTED][:_LISTED]
            values, more = tuple(self._value(name, one) for one in listed), len(listed) < len(order)
        examples = examples or tuple(_shown(one) for one in main.values)[:_EXAMPLES]
        # The least of some is not about the least of all.
        least, most = (None, None) if self.about else (_plain(main.least), _plain(main.most))
        if not is_date and main.type != "number":
            least = most = None
        rows = self._scaled(sum(one.rows for one in counts))
        return IndexColumn(name, type_, examples, rows, self.about, least, most, values, more)

    def _in_folders(self, values: Mapping[str, int]) -> dict[str, int]:
        """Number of pictures in each folder and below it, in the order of folders' names."""
        rows: Counter[str] = Counter()
        for folder, many in values.items():
            for one in accumulate(folder.split("/"), lambda outer, name: f"{outer}/{name}"):
                rows[one] += many
        in_order = {one: rows[one] for one in sorted(filter(None, rows), key=lambda one: one.casefold().split("/"))}
        for one in in_order:
            self._inner.setdefault(one.rpartition("/")[0], []).append(one)
        return in_order

    def _value(self, column: str, value: str) -> ColumnValue:
        inner = column == _FOLDER and value in self._inner
        return ColumnValue(value, self._scaled(self._values[column][value]), inner)

    def _scaled(self, rows: int) -> int:
        return max(1, round(rows * self._share))


def uncounted(columns: Sequence[IndexColumn]) -> tuple[IndexColumn, ...]:
    """The same columns without any number or value: those of some pictures say nothing of all."""
    return tuple(IndexColumn(one.name, one.type, one.examples, None, False, None, None, (), False) for one in columns)


def _folded(text: str) -> str:
    r"""A text whatever its case; accents may be signs of their own, as some file systems write them.

    >>> _folded("Cafe\u0301") == _folded("CAF\u00c9")
    True
    """
    folded = text.casefold()
    return folded if folded.isascii() else normalised(folded, "NFC")


def _shown(value: str | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(_plain(value))


def _plain(value: str | float | None) -> str | float | None:
    """A number without a fraction as a whole one."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return int(value) if is_whole else value  # type: ignore[arg-type]  # a number, then
