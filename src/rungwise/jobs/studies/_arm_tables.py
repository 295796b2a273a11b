"""The tables of a study: a row for each system, with mean and deviation over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rungwise.core.disk import replacing
from rungwise.core.output import TextTable, latex_text, markdown_text
from rungwise.evaluation import Result
from rungwise.evaluation.statistics import number_text
from rungwise.metrics import parse
from rungwise.runs import Spread

TABLES = ("table.md", "table.tex", "table.csv")
"""Files of the table in the folder of a study."""
_WIDTH = 80
_SYSTEM = "system"

Spreads = Mapping[str, Mapping[str, Spread]]
"""Spread over seeds of each number by name, of each system by name."""


def spreads_of(results: Mapping[str, Sequence[Sequence[Result]]]) -> dict[str, dict[str, Spread]]:
    """Spread of each number over the runs of each system.

    Args:
        results: For each system the results of each of its runs, one for each question, in one order.
    """
    found: dict[str, dict[str, Spread]] = {}
    for name, runs in results.items():
        own: dict[str, Spread] = {}
        for of_question in zip(*runs, strict=True):
            for number in of_question[0].numbers:
                if all(number in one for one in of_question):
                    own[_label(number, of_question[0], own)] = Spread(tuple(one[number] for one in of_question))
        found[name] = own
    return found


def _label(number: str, result: Result, taken: Iterable[str]) -> str:
    """Name of a number; where another question has it as well, with what tells them apart."""
    if number not in taken:
        return number
    return f"{number} ({', '.join(filter(None, (result.protocol, result.relevance)))})"


def arm_table(spreads: Spreads, primary: str, title: str, *, width: int | None = _WIDTH) -> TextTable:
    """A table of systems, the primary measure first.

    Args:
        spreads: The numbers.
        primary: Measure that stands first.
        title: Title of the table.
        width: Largest number of columns of text; None takes all measures.
    """
    measures = list(dict.fromkeys(name for own in spreads.values() for name in own))
    measures.sort(key=lambda name: name != primary)
    cells = {name: [_cell(own.get(name), name) for own in spreads.values()] for name in measures}
    room = max((len(name) for name in (_SYSTEM, *spreads)), default=0)
    shown: list[str] = []
    for name in measures:
        room += 2 + max(len(name), *(len(one) for one in cells[name]))
        if width is None or room <= width or not shown:
            shown.append(name)
        else:
            break
    rows = [[system, *(cells[name][at] for name in shown)] for at, system in enumerate(spreads)]
    return TextTable([_SYSTEM, *shown], rows, frozenset({_SYSTEM}), title)


def write_tables(out: Path, spreads: Spreads, primary: str, title: str, notes: Sequence[str]) -> tuple[Path, ...]:
    """Write the table with all measures as Markdown, LaTeX and CSV; returns the files."""
    table = arm_table(spreads, primary, title, width=None)
    lines = ["system,measure,mean,deviation,seeds,values"]
    for system, own in spreads.items():
        for name, spread in own.items():
            values = " ".join(map(repr, spread.values))
            deviation = "" if math.isnan(spread.deviation) else repr(spread.deviation)
            label = f'"{name}"' if "," in name else name
            system_cell = f'"{system}"' if "," in system else system
            lines.append(f"{system_cell},{label},{spread.mean!r},{deviation},{len(spread.values)},{values}")
    texts = (markdown_text([table], notes), latex_text([table], notes), "\n".join(lines))
    paths = tuple(out / name for name in TABLES)
    for path, text in zip(paths, texts, strict=True):
        with replacing(path) as draft:
            draft.write_text(text + "\n", encoding="utf-8")
    return paths


def in_lines(table: TextTable) -> list[str]:
    """A table as lines of a terminal."""
    columns = list(zip(table.head, *table.rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            cell.ljust(width) if name in table.left else cell.rjust(width)
            for cell, width, name in zip(row, widths, table.head, strict=True)
        ).rstrip()
        for row in (table.head, *table.rows)
    ]


def _cell(spread: Spread | None, name: str) -> str:
    if spread is None:
        return "-"
    unit = parse(name.partition(" (")[0].rpartition("/")[2]).unit
    mean = number_text(spread.mean, unit)
    return mean if math.isnan(spread.deviation) else f"{mean} ± {number_text(spread.deviation, unit)}"
