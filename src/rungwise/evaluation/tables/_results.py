"""Tables of a result: for the terminal, Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rungwise.core import UserError
from rungwise.evaluation._protocols import WRITTEN_FOR
from rungwise.evaluation._result import Result
from rungwise.evaluation.tables._published_rows import PAPERS, PublishedRow
from rungwise.metrics import CORRELATION, FRACTION, parse

if TYPE_CHECKING:
    from rich.table import Table

TextFormat = Literal["markdown", "latex", "csv", "json"]
"""Formats that :func:`format_result` writes."""

WAYS = {"i2t": "image to text", "t2i": "text to image"}
"""Names of the directions in headings."""


_MEASURES_BESIDE = 6
"""Number of measures in a table by class that fit into 80 columns beside the names of classes."""

Intervals = Mapping[str, tuple[float, float]]
"""Lower and upper bound of a number by its name, as ``Result.intervals()`` gives them."""


def render_table(result: Result, intervals: Intervals | None = None) -> Table:
    """Table with both directions side by side and sums below; at most 80 columns wide without intervals."""
    from rich.table import Table

    table = Table(title=title_of(result), caption="\n".join(notes_of(result)))
    head, rows = cells_of(result, intervals)
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
    for title, (head, rows) in class_cells(result).items():
        for first in range(2, len(head), _MEASURES_BESIDE):
            shown = [0, 1, *range(first, min(first + _MEASURES_BESIDE, len(head)))]
            table = Table(title=title, box=box.SIMPLE_HEAD)
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


def class_cells(result: Result) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Heading and rows of the numbers by class as they print, by the title of each direction's table."""
    found = {}
    for way, classes in result.by_class.classes.items() if result.by_class else ():
        measures = [name.partition("/")[2] for name in result.numbers if name.startswith(f"{way}/")]
        rows = [
            [
                one.label,
                str(one.queries),
                *(number_text(one.numbers[name], result.units[f"{way}/{name}"]) for name in measures),
            ]
            for one in classes
        ]
        found[f"{WAYS[way]}, by class"] = (["class", "queries", *measures], rows)
    return found


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
                for one in rows
            ]
        return json.dumps(content, indent=1)
    if form == "csv":
        return _csv(result, rows, ours, intervals or {})
    head, body = cells_of(result, intervals)
    tables = [(head, body), *class_cells(result).values()]
    if rows:
        tables.append(published_cells(result, ours, rows))
    of_classes = result.by_class.notes() if result.by_class else []
    notes = "; ".join([f"protocol {result.protocol}", *notes_of(result), *of_classes, *sources_of(rows)])
    if form == "markdown":
        return "\n\n".join([*(_markdown(*one) for one in tables), notes])
    return "\n\n".join([*(_latex(*one) for one in tables), "% " + notes])


def card_facts(result: Result, intervals: Intervals | None = None) -> dict[str, Any]:
    """Plain values of a result for the model card that :func:`rungwise.models.add_evaluation` writes."""
    head, rows = cells_of(result, intervals)
    notes = notes_of(result)
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


def _named(ours: str, result: Result) -> str:
    """Name of our row, which also says that a second model orders the best candidates."""
    return ours if result.reranking is None else f"{ours}, the first {result.reranking.top} reranked"


def title_of(result: Result) -> str:
    """Title of a table: the data and the protocol."""
    title = _named(f"protocol {result.protocol}", result)
    return f"{result.data_name}, {title}" if result.data_name else title


def cells_of(result: Result, intervals: Intervals | None = None) -> tuple[list[str], list[list[str]]]:
    """Heading and rows as they print: both directions side by side, sums last, bounds behind their number.

    >>> import numpy as np
    >>> from rungwise.evaluation._evaluate import evaluate
    >>> cells_of(evaluate(similarity=np.eye(2), image_of_caption=[0, 1], measures=["MedR"]), {"t2i/MedR": (1, 2)})[1]
    [['MedR', '1.0', '1.0 [1.0, 2.0]', 'rank']]
    """

    def shown(name: str) -> str:
        text = number_text(result[name], result.units[name])
        if intervals is None or name not in intervals:
            return text
        low, high = (number_text(bound, result.units[name]) for bound in intervals[name])
        return f"{text} [{low}, {high}]"

    ways = [way for way in WAYS if any(name.startswith(f"{way}/") for name in result.numbers)]
    both = list(dict.fromkeys(name.partition("/")[2] for name in result.numbers if "/" in name))
    rows = []
    for measure in both:
        unit = result.units[f"{ways[0]}/{measure}"]
        rows.append([measure, *(shown(f"{way}/{measure}") for way in ways), _sense(measure, unit)])
    for name in result.numbers:
        if "/" not in name:
            unit = result.units[name]
            rows.append([name, *[""] * (len(ways) - 1), shown(name), f"{unit}, both directions"])
    return ["measure", *(WAYS[way] for way in ways), "unit"], rows


def _sense(measure: str, unit: str) -> str:
    """The unit; for errors, which only this tells from shares, with the remark that 0 is best."""
    try:
        error = unit == FRACTION and not parse(measure).higher_is_better
    except UserError:  # a measure that this program does not know
        return unit
    return f"{unit}, 0 is best" if error else unit


def published_cells(result: Result, ours: str, rows: Sequence[PublishedRow]) -> tuple[list[str], list[list[str]]]:
    """Heading and rows of our numbers beside published ones, for the numbers that both have.

    >>> import numpy as np
    >>> from rungwise.evaluation._evaluate import evaluate
    >>> result = evaluate(similarity=np.eye(2), image_of_caption=[0, 1], measures=["R@1"])
    >>> published_cells(result, "ours", [PublishedRow("sam", "Table 2", "CVSE", "coco", 2, "full", {"i2t/R@1": 60.0})])
    (['method', 'i2t/R@1'], [['ours', '100.0'], ['CVSE (sam, Table 2)', '60.0']])
    """
    names = [name for name in result.numbers if not rows or any(name in row.numbers for row in rows)]
    body = [[_named(ours, result), *(number_text(result[name], result.units[name]) for name in names)]]
    for row in rows:
        shown = [number_text(row.numbers.get(name, math.nan), result.units[name]) for name in names]
        if any(cell != "-" for cell in shown):
            body.append([f"{row.method} ({row.paper}, {row.table})", *shown])
    return ["method", *names], body


def sources_of(rows: Iterable[PublishedRow]) -> list[str]:
    """One line per paper with its title."""
    return [f"{paper}: {PAPERS[paper]}" for paper in dict.fromkeys(row.paper for row in rows)]


def notes_of(result: Result) -> list[str]:
    """Notes below a table: gallery, what was right, reranking, source of degrees, and values set by convention.

    >>> import numpy as np
    >>> from rungwise.evaluation._evaluate import evaluate
    >>> notes_of(evaluate(similarity=np.eye(2), image_of_caption=[0, 0], measures=["R@1"]))
    ['2 images x 2 captions (0 to 2 an image)', 'i2t: 1 of 2 queries no positive, left out (R@1)']
    """
    folds = len(result.gallery["i2t"])
    least, most = result.captions_per_image["min"], result.captions_per_image["max"]
    per_image = f"{least:.0f}" if least == most else f"{least:.0f} to {most:.0f}"
    images, captions = result.gallery["t2i"][0], result.gallery["i2t"][0]
    lines = [
        f"{images} images x {captions} captions ({per_image} an image)"
        + (f", mean of {folds} folds" if folds > 1 else "")
    ]
    if result.right and result.right != WRITTEN_FOR:
        lines.append(f"right: {result.right}")
    if result.reranking is not None:
        lines.append(result.reranking.note())
    if result.relevance:
        lines.append(f"degrees: {degrees_text(result)}")
    if result.ends:
        lines.append(f"relevance ends by: {result.ends}")
    alike: dict[tuple[str, int, str], list[str]] = {}
    for name, counts in result.remarks.items():
        way, _, measure = name.partition("/")
        for reason, count in counts.items():
            alike.setdefault((way, count, reason), []).append(measure)
    for (way, count, reason), measures in alike.items():
        lines.append(f"{way}: {count} of {result.queries[way]} queries {reason} ({', '.join(measures)})")
    return [*lines, *(f"warning: {warning}" for warning in result.warnings)]


def degrees_text(result: Result) -> str:
    """Name of a result's degrees, with the captions of an image that they compare a caption with."""
    return f"{result.relevance}, reference {result.reference}" if result.reference else result.relevance


def number_text(value: float, unit: str) -> str:
    """Text of a number in tables; a dash for NaN, and no sign where all digits are 0.

    >>> number_text(56.72, "percent"), number_text(0.23456, "correlation"), number_text(-0.04, "percent")
    ('56.7', '0.2346', '0.0')
    """
    if math.isnan(value):
        return "-"
    return f"{value:z.4f}" if unit in (CORRELATION, FRACTION) else f"{value:z.1f}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    aligned = [":--" if name in ("measure", "unit", "method", "class") else "--:" for name in head]
    lines = [head, *rows]
    text = [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]
    return "\n".join([text[0], f"|{'|'.join(aligned)}|", *text[1:]])


_LATEX_SPECIAL = {character: "\\" + character for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def _latex(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join("".join(_LATEX_SPECIAL.get(c, c) for c in cell) for cell in cells) + r" \\"

    columns = "".join("l" if name in ("measure", "unit", "method", "class") else "r" for name in head)
    body = [line(head), r"\hline", *(line(row) for row in rows)]
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\hline", *body, r"\hline", r"\end{tabular}"])


def _csv(result: Result, rows: Sequence[PublishedRow], ours: str, intervals: Intervals) -> str:
    file = io.StringIO(newline="")
    table = csv.writer(file, lineterminator="\n")
    no_class = [""] if result.by_class else []
    table.writerow(("source", "protocol", "name", "value", "unit", "low", "high", *(["class"] if no_class else [])))
    ours = _named(ours, result)
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
