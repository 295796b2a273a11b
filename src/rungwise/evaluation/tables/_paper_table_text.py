"""Text of a printed table with our results: for a terminal of 80 columns, Markdown, or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from textwrap import wrap

from rungwise.evaluation.statistics import WAYS
from rungwise.evaluation.tables._paper_table import Block, Cell, PaperTable, TableLine

WIDTH = 80
_LEAST_NAME = 24
"""Smallest width of a name in characters; where the numbers leave less, the columns are cut into groups."""

_DOUBT, _OURS = "?", "> "


def table_text(table: PaperTable, width: int = WIDTH) -> str:
    """Lines for a terminal, none longer than the width; columns that do not fit stand in groups below one another."""
    parts = ["\n".join(wrap(f"{table.table} of {table.title}", width))]
    for block in table.blocks:
        parts.append("\n".join(wrap(block.title, width)))
        parts += ["\n".join(_group(block, names, width)) for names in _groups(block, width)]
    for lines in _below(table):
        # A path is not broken, so that a command can be pasted.
        parts.append("\n".join(part for line in lines for part in _wrapped(line, width, break_long_words=False)))
    return "\n\n".join(parts)


def table_markdown(table: PaperTable) -> str:
    """Markdown with one table for each block, and the notes below.

    >>> from rungwise.evaluation.tables._paper_table import paper_table
    >>> print(table_markdown(paper_table("sam", "1")).splitlines()[4])
    | | Pearson(all) | Pearson(non_gt) |
    """
    parts = [f"**{table.table}** of {table.title}"]
    for block in table.blocks:
        lines = [f"| | {' | '.join(block.names)} |", f"|:--|{'--:|' * len(block.names)}"]
        for line in block.lines:
            name = f"**{_named(line)}**" if line.ours else _named(line)
            cells = " | ".join(_text(line.cells.get(column), column) for column in block.names)
            lines.append(f"| {name.replace('|', '/')} | {cells} |")
        parts += [block.title, "\n".join(lines)]
    return "\n\n".join([*parts, *("\n\n".join(lines) for lines in _below(table))])


def table_json(table: PaperTable) -> str:
    """JSON of the whole table, with unrounded numbers."""
    return json.dumps(asdict(table), indent=1)


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
    return f"{_OURS if line.ours else ''}{line.name}{notes}"


def _text(cell: Cell | None, name: str) -> str:
    if cell is None:
        return "-"
    measure = name.rpartition("/")[2]
    digits = 3 if measure.startswith(("CS@", "Pearson")) else 2 if measure == "MAP" else 1
    deviation = "" if cell.deviation is None else f" ±{cell.deviation:.{digits}f}"
    return f"{cell.value:.{digits}f}{deviation}{_DOUBT if cell.doubt else ''}"


def _below(table: PaperTable) -> list[list[str]]:
    """Lines below the table: doubts, notes, and what stands nowhere."""
    doubts = dict.fromkeys(
        f"{_DOUBT} {line.name}, {name}: {cell.doubt}"
        for block in table.blocks
        for line in block.lines
        for name, cell in line.cells.items()
        if cell.doubt
    )
    notes = [f"[{number}] {note}" for number, note in enumerate(table.notes, 1)]
    if any(line.ours for block in table.blocks for line in block.lines):
        notes.insert(0, f"{_OURS}ours; ± standard deviation over seeds")
    left_out = ["Not in the table:", *table.left_out] if table.left_out else []
    return [lines for lines in (list(doubts), notes, left_out) if lines]
