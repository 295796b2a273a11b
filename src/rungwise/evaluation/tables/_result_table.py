"""Tables of results in blocks that may be compared within: lines for a terminal, Markdown, LaTeX, CSV, JSON and HTML.

A block has one protocol, test set and source of degrees; its lines are systems, and its columns are numbers.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from rungwise.core import UserError
from rungwise.core.output import InTables, TextTable, frame_of, in_few_lines, one_line, page, plain, short_repr
from rungwise.evaluation.statistics import WAYS
from rungwise.metrics import CORRELATION, DEGREE, DIRECTIONS, FRACTION, parse

if TYPE_CHECKING:
    import pandas

WIDTH = 80
_LEAST_NAME = 24
"""Smallest width of a name in characters; where the numbers leave less, the columns are cut into groups."""

OURS = "> "
"""Mark of a line of ours beside printed ones."""
_DOUBT = "?"
MARKS = {"": "", "best": "*", "differs": "†"}
"""Mark of a cell in plain text."""

TableFormat = Literal["table", "markdown", "latex", "csv", "json", "html"]
"""Formats of a table; ``table`` is that for a terminal."""


@dataclass(frozen=True)
class Cell:
    """One number of a line.

    Attributes:
        value: Number on the scale of results.
        deviation: Standard deviation over runs, where there are several.
        doubt: Statement of what a printed number contradicts; empty for most.
        mark: ``"best"`` for the best number of its column, ``"differs"`` for one whose difference from the best is
            shown to be more than chance; empty for all others, and where nothing was compared.
    """

    value: float
    deviation: float | None = None
    doubt: str = ""
    mark: Literal["", "best", "differs"] = ""


@dataclass(frozen=True)
class TableLine:
    """One line of a block.

    Attributes:
        name: Name of the method.
        cells: Cells by canonical name; an unknown number is absent.
        ours: Whether the numbers are ours beside those of a paper.
        notes: Numbers of the table's notes that apply, from 1.
    """

    name: str
    cells: Mapping[str, Cell]
    ours: bool = False
    notes: tuple[int, ...] = ()

    __repr__ = short_repr


@dataclass(frozen=True)
class Block:
    """Lines that may be compared with one another.

    Attributes:
        title: Test set, protocol and source of degrees.
        names: Canonical names of the columns.
        lines: The lines: those of a paper, each followed by ours that stand for it, or one for each system.
    """

    title: str
    names: tuple[str, ...]
    lines: tuple[TableLine, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class ResultTable(InTables):
    """A table of results: of a paper together with ours, or of our systems alone.

    Attributes:
        title: What the table is.
        blocks: Blocks, in the order of the paper or of the systems.
        notes: Notes on lines, numbered from 1.
        left_out: What stands nowhere in the table, with the reason, one sentence each.
        marks: What the marks of the table mean, and how differences were tested, one sentence each.
        paper: Short name of the paper; empty for a table of our systems.
        table: Number of the paper's table, such as ``"Table 1"``; empty for a table of our systems.

    >>> cells = {"rsum": Cell(412.25, 1.5, mark="best")}
    >>> print(ResultTable("two systems", (Block("flickr8k", ("rsum",), (TableLine("ladder", cells),)),)).to_text())
    two systems
    <BLANKLINE>
    flickr8k
    <BLANKLINE>
                  rsum
    ------------------
    ladder 412.2 ±1.5*
    """

    title: str
    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    paper: str = ""
    table: str = ""

    def to_text(self, width: int = WIDTH) -> str:
        """Lines for a terminal, none longer than the width; columns that do not fit stand in groups."""
        parts = ["\n".join(wrap(self.title, width))]
        for block in self.blocks:
            parts.append("\n".join(wrap(block.title, width)))
            parts += ["\n".join(_group(block, names, width)) for names in _groups(block, width)]
        for lines in self._paragraphs():
            # A path is not broken, so that a command can be pasted.
            parts.append("\n".join(part for line in lines for part in _wrapped(line, width, break_long_words=False)))
        return "\n\n".join(parts)

    def to_markdown(self) -> str:
        """A table in GitHub's Markdown for each block, the best numbers bold, and the notes below."""
        parts = [f"**{self.title}**"]
        for block, table in zip(self.blocks, self.in_tables(), strict=True):
            parts += [block.title, table.markdown()]
        return "\n\n".join([*parts, *("\n\n".join(lines) for lines in self._paragraphs())])

    def to_latex(self) -> str:
        """A ``tabular`` for the package booktabs for each block; titles and notes are comments.

        A block of many numbers has one for each direction, since a page of a paper is narrow.
        """
        parts = [f"% {plain(self.title)}"]
        for block in self.blocks:
            ways = (*DIRECTIONS, "") if len(block.names) > _MOST_IN_LATEX else (None,)
            for way in ways:
                names = tuple(name for name in block.names if way is None or name.rpartition("/")[0] == way)
                if names:
                    parts.append(f"% {plain(block.title)}\n{_as_table(replace(block, names=names)).latex()}")
        return "\n\n".join([*parts, "\n".join(f"% {plain(said)}" for said in self.below())]).rstrip()

    def to_html(self) -> str:
        """A page of its own, without script or request."""
        tables = "".join(table.html() for table in self.in_tables())
        below = "".join(f"<p class=note>{escape(line)}</p>" for line in self.below())
        return page(self.title, tables + below, _STYLE)

    def to_csv(self) -> str:
        """One line for each number, unrounded: block, system, name, value, deviation, mark."""
        file = io.StringIO(newline="")
        table = csv.writer(file, lineterminator="\n")
        columns = self._columns()
        table.writerow(columns)
        table.writerows(zip(*columns.values(), strict=True))
        return file.getvalue()

    def to_json(self) -> str:
        """JSON of the whole table, with unrounded numbers."""
        return json.dumps(asdict(self), indent=1)

    def to_frame(self) -> pandas.DataFrame:
        """A row for each number, by the name of its system.

        Raises:
            UserError: If pandas is not installed.
        """
        return frame_of(self._columns(), "system")

    def to_format(self, form: TableFormat, width: int = WIDTH) -> str:
        """The table in one of its formats."""
        match form:
            case "markdown":
                return self.to_markdown()
            case "latex":
                return self.to_latex()
            case "csv":
                return self.to_csv()
            case "json":
                return self.to_json()
            case "html":
                return self.to_html()
        return self.to_text(width)

    def __repr__(self) -> str:
        facts = []
        for block in self.blocks:
            for line in block.lines:
                cells = ", ".join(
                    f"{name} {_text(line.cells[name], name)}" for name in block.names[-3:] if name in line.cells
                )
                facts.append((one_line(line.name, 40), one_line(f"{cells}; {block.title}", 100)))
        more = len(facts) - _FEW
        return in_few_lines(
            one_line(self.title, 100), [*facts[:_FEW], ("further lines", str(more) if more > 0 else "")]
        )

    def _columns(self) -> dict[str, list[object]]:
        found: dict[str, list[object]] = {
            name: [] for name in ("block", "system", "ours", "name", "value", "deviation", "mark")
        }
        for block in self.blocks:
            for line in block.lines:
                for name in block.names:
                    if cell := line.cells.get(name):
                        deviation = "" if cell.deviation is None else cell.deviation
                        row = (block.title, line.name, line.ours, name, cell.value, deviation, cell.mark)
                        for column, value in zip(found.values(), row, strict=True):
                            column.append(value)
        return found

    def _title(self) -> str:
        return self.title

    def in_tables(self) -> list[TextTable]:
        """The blocks as they print."""
        return [_as_table(block) for block in self.blocks]

    def below(self) -> list[str]:
        """Lines that belong below the blocks: doubts, what marks mean, notes, and what stands nowhere."""
        return [line for lines in self._paragraphs() for line in lines]

    def _tables(self) -> list[TextTable]:
        return self.in_tables()

    def _below(self) -> list[str]:
        return self.below()

    def _paragraphs(self) -> Iterator[list[str]]:
        """Lines below the table: doubts, marks and notes, and what stands nowhere."""
        doubts = dict.fromkeys(
            f"{_DOUBT} {line.name}, {name}: {cell.doubt}"
            for block in self.blocks
            for line in block.lines
            for name, cell in line.cells.items()
            if cell.doubt
        )
        notes = [*self.marks, *(f"[{number}] {note}" for number, note in enumerate(self.notes, 1))]
        left_out = ["Not in the table:", *self.left_out] if self.left_out else []
        yield from (lines for lines in (list(doubts), notes, left_out) if lines)


_MOST_IN_LATEX = 8
"""Number of columns of numbers that a page of a paper has room for."""
_FEW = 8
"""Number of lines that a table prints in a session."""
_STYLE = """table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; } .title { font-weight: 600; margin: 1.5rem 0 .4rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
th.left, td.left { text-align: left; padding-left: 0; }"""


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names of numbers as columns stand: image to text, text to image, both; ranks after rates.

    >>> in_order(["rsum", "t2i/MedR", "t2i/R@1", "i2t/R@1"])
    ('i2t/R@1', 't2i/R@1', 't2i/MedR', 'rsum')
    """

    def place(name: str) -> tuple[int, bool]:
        way, _, measure = name.rpartition("/")
        return (*DIRECTIONS, "").index(way), measure in ("MedR", "MeanR")

    return tuple(sorted(dict.fromkeys(names), key=place))


def _as_table(block: Block) -> TextTable:
    rows = [
        [_named(line), *(_text(line.cells.get(name), name, marked=False) for name in block.names)]
        for line in block.lines
    ]
    strong = frozenset(
        (at, place)
        for at, line in enumerate(block.lines)
        for place, name in enumerate(["", *block.names])
        if (line.ours and not name) or (name in line.cells and line.cells[name].mark == "best")
    )
    return TextTable(["system", *block.names], rows, frozenset({"system"}), block.title, strong)


def _groups(block: Block, width: int) -> list[tuple[str, ...]]:
    """Columns in groups that fit beside a name: all in one, else by direction, else as many as fit."""
    if _fits(block, block.names, width):
        return [block.names]
    groups = []
    for way in (*WAYS, ""):
        names = [name for name in block.names if name.rpartition("/")[0] == way]
        while names:
            count = next(
                count for count in range(len(names), 0, -1) if count == 1 or _fits(block, names[:count], width)
            )
            groups.append(tuple(names[:count]))
            names = names[count:]
    return groups


def _fits(block: Block, names: Sequence[str], width: int) -> bool:
    return sum(size + 1 for size in _sizes(block, names)) <= width - _LEAST_NAME


def _sizes(block: Block, names: Sequence[str]) -> list[int]:
    return [
        max(len(part) for part in (*name.split("/"), *(_text(line.cells.get(name), name) for line in block.lines)))
        for name in names
    ]


def _group(block: Block, names: Sequence[str], width: int) -> list[str]:
    """Heading and lines of some columns, with the directions above the measures."""
    sizes = _sizes(block, names)
    lines = [line for line in block.lines if any(name in line.cells for name in names)]
    room = width - sum(size + 1 for size in sizes)
    room = max(min(room, max((len(_named(line)) for line in lines), default=0)), 1)

    def row(name: str, cells: Sequence[str]) -> str:
        return " ".join([name.ljust(room), *(cell.rjust(size) for cell, size in zip(cells, sizes, strict=True))])

    head = [row("", [name.rpartition("/")[0] for name in names])] if any("/" in name for name in names) else []
    head.append(row("", [name.rpartition("/")[2] for name in names]))
    body = []
    for line in lines:
        first, *rest = _wrapped(_named(line), room)
        body.append(row(first, [_text(line.cells.get(name), name) for name in names]))
        body += rest
    return [one.rstrip() for one in (*head, "-" * len(head[-1]), *body)]


def _wrapped(text: str, width: int, break_long_words: bool = True) -> list[str]:
    return wrap(text, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=break_long_words)


def _named(line: TableLine) -> str:
    notes = "".join(f" [{note}]" for note in line.notes)
    return f"{OURS if line.ours else ''}{line.name}{notes}"


def _text(cell: Cell | None, name: str, marked: bool = True) -> str:
    """A cell as it prints; the best number has a mark where it cannot be bold."""
    if cell is None:
        return "-"
    digits = _digits(name.rpartition("/")[2])
    deviation = "" if cell.deviation is None else f" ±{cell.deviation:.{digits}f}"
    mark = MARKS[cell.mark] if marked or cell.mark == "differs" else ""
    return f"{cell.value:.{digits}f}{deviation}{_DOUBT if cell.doubt else ''}{mark}"


def _digits(measure: str) -> int:
    """Decimals of a measure, as papers print it."""
    if measure == "MAP":
        return 2
    if measure.startswith("Pearson"):
        return 3
    try:
        return 3 if parse(measure).unit in (CORRELATION, DEGREE, FRACTION) else 1
    except UserError:  # a measure that this program does not know
        return 1
