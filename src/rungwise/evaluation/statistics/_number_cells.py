"""Cells of tables from numbers by name: both directions side by side, sums last, bounds behind their number."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rungwise.core import UserError
from rungwise.core.output import TextTable
from rungwise.evaluation.statistics._by_class import ByClass
from rungwise.evaluation.statistics._intervals import is_known
from rungwise.metrics import CORRELATION, DEGREE, FRACTION, parse

WAYS = {"i2t": "image to text", "t2i": "text to image"}
"""Names of the directions in headings."""

WORDS = frozenset({"measure", "unit", "method", "class"})
"""Columns of tables that hold words."""

Intervals = Mapping[str, tuple[float, float]]
"""Lower and upper bound of a number by its name, as ``Result.intervals()`` gives them."""


def number_text(value: float, unit: str) -> str:
    """Text of a number in tables; a dash for NaN, and no sign where all digits are 0.

    >>> number_text(56.72, "percent"), number_text(0.23456, "correlation"), number_text(-0.04, "percent")
    ('56.7', '0.2346', '0.0')
    """
    if math.isnan(value):
        return "-"
    return f"{value:z.4f}" if unit in (CORRELATION, DEGREE, FRACTION) else f"{value:z.1f}"


def cells_of(
    numbers: Mapping[str, float], units: Mapping[str, str], intervals: Intervals | None = None
) -> tuple[list[str], list[list[str]]]:
    """Heading and rows as they print; numbers of measures that are not known here stand last.

    >>> units = {"i2t/MedR": "rank", "t2i/MedR": "rank"}
    >>> cells_of({"i2t/MedR": 1.0, "t2i/MedR": 1.5}, units, {"t2i/MedR": (1, 2)})[1]
    [['MedR', '1.0', '1.5 [1.0, 2.0]', 'rank']]
    """

    def shown(name: str) -> str:
        text = number_text(numbers[name], units[name])
        if intervals is None or name not in intervals:
            return text
        low, high = (number_text(bound, units[name]) for bound in intervals[name])
        return f"{text} [{low}, {high}]"

    ways = [way for way in WAYS if any(name.startswith(f"{way}/") for name in numbers)]
    both = list(dict.fromkeys(name.partition("/")[2] for name in numbers if "/" in name))
    rows = []
    for measure in both:
        names = [f"{way}/{measure}" for way in ways]
        unit = next(units[name] for name in names if name in units)
        rows.append([measure, *(shown(name) if name in numbers else "-" for name in names), _sense(measure, unit)])
    rows += [
        [name, *[""] * (len(ways) - 1), shown(name), f"{units[name]}, both directions"]
        for name in numbers
        if "/" not in name
    ]
    rows.sort(key=lambda row: not is_known(row[0]))
    return ["measure", *(WAYS[way] for way in ways), "unit"], rows


def class_tables(found: ByClass | None, numbers: Mapping[str, float], units: Mapping[str, str]) -> list[TextTable]:
    """Numbers by class as they print, a table for each direction; none where classes were not asked for."""
    tables = []
    for way, classes in found.classes.items() if found else ():
        measures = [name.partition("/")[2] for name in numbers if name.startswith(f"{way}/")]
        rows = [
            [
                one.label,
                str(one.queries),
                *(number_text(one.numbers[name], units[f"{way}/{name}"]) for name in measures),
            ]
            for one in classes
        ]
        tables.append(TextTable(["class", "queries", *measures], rows, WORDS, f"{WAYS[way]}, by class"))
    return tables


def _sense(measure: str, unit: str) -> str:
    """The unit; for errors, which only this tells from shares, with the remark that 0 is best."""
    try:
        error = unit == FRACTION and not parse(measure).higher_is_better
    except UserError:  # a measure that this program does not know
        return unit
    return f"{unit}, 0 is best" if error else unit
