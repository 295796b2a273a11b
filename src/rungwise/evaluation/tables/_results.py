"""Tables of a result: for the terminal, Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rungwise.core.output import TextTable, latex_text, markdown_text
from rungwise.evaluation.result import Result
from rungwise.evaluation.statistics import WAYS, WORDS, Intervals, cells_of, class_tables, number_text
from rungwise.evaluation.tables._published_rows import PAPERS, PublishedRow

if TYPE_CHECKING:
    from rich.table import Table

TextFormat = Literal["markdown", "latex", "csv", "json"]
"""Formats that :func:`format_result` writes."""

_MEASURES_BESIDE = 6
"""Number of measures in a table by class that fit into 80 columns beside the names of classes."""


def render_table(result: Result, intervals: Intervals | None = None) -> Table:
    """Table with both directions side by side and sums below; at most 80 columns wide without intervals."""
    from rich.table import Table

    table = Table(title=result.title(), caption="\n".join(result.notes()))
    head, rows = cells_of(result.numbers, result.units, intervals)
    for name in head:
        of_way = name in WAYS.values()
        table.add_column(name, justify="right" if of_way else "left", no_wrap=of_way, overflow="fold")
    for number, row in enumerate(rows):
        if number and "both directions" in row[-1] and "both directions" not in rows[number - 1][-1]:
            table.add_section()
        table.add_row(*row)
    return table


def render_by_class(result: Result) -> list[Table]:
    """One table per direction with a row per class, at most 80 columns wide; none where classes were not asked for."""
    from rich import box
    from rich.table import Table

    tables = []
    for one in class_tables(result.by_class, result.numbers, result.units):
        head, rows = one.head, one.rows
        for first in range(2, len(head), _MEASURES_BESIDE):
            shown = [0, 1, *range(first, min(first + _MEASURES_BESIDE, len(head)))]
            table = Table(title=one.title, box=box.SIMPLE_HEAD)
            for number, column in enumerate(shown):
                table.add_column(
                    head[column],
                    justify="right" if number else "left",
                    overflow="fold",
                    min_width=max((len(row[column]) for row in rows), default=1) if number else 8,
                )
            for row in rows:
                table.add_row(*(row[column] for column in shown))
            tables.append(table)
    if tables and result.by_class:
        tables[-1].caption = "\n".join(result.by_class.notes()) or None
    return tables


def render_published(result: Result, ours: str, rows: Sequence[PublishedRow]) -> str:
    """Lines for a terminal: numbers in columns, ours first, and the name last, since that may be long.

    >>> import numpy as np
    >>> from rungwise.evaluation._evaluate import evaluate
    >>> print(render_published(evaluate(similarity=np.eye(2), image_of_caption=[0, 1], measures=["R@1"]), "ours", []))
    i2t/R@1 t2i/R@1
      100.0   100.0  ours
    """
    head, body = published_cells(result, ours, rows)
    widths = [max(len(line[column]) for line in (head, *body)) for column in range(1, len(head))]
    lines = [" ".join(name.rjust(width) for name, width in zip(head[1:], widths, strict=True))]
    for name, *numbers in body:
        cells = " ".join(cell.rjust(width) for cell, width in zip(numbers, widths, strict=True))
        lines.append(f"{cells}  {name}")
    return "\n".join([*lines, *sources_of(rows)])


def format_result(
    result: Result,
    form: TextFormat,
    rows: Sequence[PublishedRow] = (),
    ours: str = "ours",
    intervals: Intervals | None = None,
) -> str:
    r"""Text of the table, followed by published rows if there are any.

    Args:
        result: Result to write.
        form: Format: ``"latex"`` needs no package; ``"csv"`` has unrounded numbers; ``"json"`` has these and everything
            that says what they are.
        rows: Rows that papers print.
        ours: Name of our row.
        intervals: Bounds to print beside the numbers.

    >>> import numpy as np
    >>> from rungwise.evaluation._evaluate import evaluate
    >>> result = evaluate(similarity=np.eye(2), image_of_caption=[0, 1], measures=["R@1"])
    >>> print(format_result(result, "markdown"))
    | measure | image to text | text to image | unit |
    |:--|--:|--:|:--|
    | R@1 | 100.0 | 100.0 | percent |
    <BLANKLINE>
    protocol full; 2 images x 2 captions (1 an image)
    """
    if form == "json":
        content = result.plain()
        if intervals:
            content["intervals"] = {
                name: [None if math.isnan(bound) else bound for bound in one] for name, one in intervals.items()
            }
        if rows:
            content["published"] = [
                {"paper": PAPERS[one.paper], "table": one.table, "method": one.method, "numbers": dict(one.numbers)}
                | ({"source": one.source, "looked_up": one.looked_up, "date": one.date} if one.source else {})
                for one in rows
            ]
        return json.dumps(content, indent=1)
    if form == "csv":
        return _csv(result, rows, ours, intervals or {})
    tables = result.in_tables(intervals)
    if rows:
        tables.append(TextTable(*published_cells(result, ours, rows), WORDS))
    of_classes = result.by_class.notes() if result.by_class else []
    notes = [f"protocol {result.protocol}", *result.notes(), *of_classes, *sources_of(rows)]
    return (markdown_text if form == "markdown" else latex_text)(tables, notes)


def card_facts(result: Result, intervals: Intervals | None = None) -> dict[str, Any]:
    """Plain values of a result for the model card that :func:`rungwise.models.add_evaluation` writes."""
    head, rows = cells_of(result.numbers, result.units, intervals)
    notes = result.notes()
    if intervals:
        notes.append("in brackets: 95 % bootstrap intervals over pictures")
    return {
        "data": result.data_name,
        "data_hash": result.data_hash,
        "model_hash": result.model_hash,
        "protocol": result.protocol,
        "head": head,
        "rows": rows,
        "notes": notes,
        "numbers": {name: float(value) for name, value in result.numbers.items() if math.isfinite(value)},
        "version": result.version,
    }


def published_cells(result: Result, ours: str, rows: Sequence[PublishedRow]) -> tuple[list[str], list[list[str]]]:
    """Heading and rows of our numbers beside published ones, for the numbers that both have.

    >>> import numpy as np
    >>> from rungwise.evaluation._evaluate import evaluate
    >>> result = evaluate(similarity=np.eye(2), image_of_caption=[0, 1], measures=["R@1"])
    >>> published_cells(result, "ours", [PublishedRow("sam", "Table 2", "CVSE", "coco", 2, "full", {"i2t/R@1": 60.0})])
    (['method', 'i2t/R@1'], [['ours', '100.0'], ['CVSE (sam, Table 2)', '60.0']])
    """
    names = [name for name in result.numbers if not rows or any(name in row.numbers for row in rows)]
    body = [[result.named(ours), *(number_text(result[name], result.units[name]) for name in names)]]
    for row in rows:
        shown = [number_text(row.numbers.get(name, math.nan), result.units[name]) for name in names]
        if any(cell != "-" for cell in shown):
            body.append([f"{row.method} ({row.paper}, {row.table})", *shown])
    return ["method", *names], body


def sources_of(rows: Iterable[PublishedRow]) -> list[str]:
    """One line per paper with its title, then one per source of rows that come from several."""
    rows = tuple(rows)
    titles = [f"{paper}: {PAPERS[paper]}" for paper in dict.fromkeys(row.paper for row in rows)]
    methods: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.origin:
            methods.setdefault(row.origin, {})[row.facts.get("method", row.method)] = None
    return [*titles, *(f"{', '.join(names)}: {origin}" for origin, names in methods.items())]


def _csv(result: Result, rows: Sequence[PublishedRow], ours: str, intervals: Intervals) -> str:
    file = io.StringIO(newline="")
    table = csv.writer(file, lineterminator="\n")
    no_class = [""] if result.by_class else []
    table.writerow(("source", "protocol", "name", "value", "unit", "low", "high", *(["class"] if no_class else [])))
    ours = result.named(ours)
    for name, value in result.numbers.items():
        shown = ["" if math.isnan(one) else repr(float(one)) for one in (value, *intervals.get(name, ()))]
        bounds = shown[1:] or ("", "")
        table.writerow((ours, result.protocol, name, shown[0], result.units[name], *bounds, *no_class))
    for row in rows:
        for name, value in row.numbers.items():
            if name in result.units:
                source = f"{row.method} ({row.paper}, {row.table})"
                table.writerow((source, row.protocol, name, repr(value), result.units[name], "", "", *no_class))
    for way, classes in result.by_class.classes.items() if result.by_class else ():
        for one in classes:
            table.writerow((ours, result.protocol, f"{way}/queries", one.queries, "queries", "", "", one.label))
            for name, value in one.numbers.items():
                number = "" if math.isnan(value) else repr(float(value))
                unit = result.units[f"{way}/{name}"]
                table.writerow((ours, result.protocol, f"{way}/{name}", number, unit, "", "", one.label))
    return file.getvalue()
