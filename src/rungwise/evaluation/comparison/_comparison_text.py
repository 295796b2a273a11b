"""A comparison as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rungwise.evaluation.comparison._comparison import Comparison, pair_cells, pair_head

WIDTH = 80
_WITHOUT_SEEDS = 6
"""Number of columns of a table without those of seeds."""


def comparison_text(found: Comparison, width: int = WIDTH) -> str:
    """Lines for a terminal: what is compared, what is shown, a table for each two systems, and what its words mean.

    >>> import numpy as np
    >>> from rungwise.evaluation import compare, evaluate
    >>> one, other = (evaluate(similarity=s, image_of_caption=[0, 1]) for s in (np.eye(2)[::-1], np.eye(2)))
    >>> print(comparison_text(compare([one, other], ["rsum"])).splitlines()[3])
    no difference shown between A and B: +200.0 by rsum, tested by 2 pictures
    """
    parts = ["\n".join(_wrapped([*found.legend(), "", *found.verdicts()], width))]
    for (one, two), pair in found.pairs.items():
        rows = [pair_head(found, pair), *pair_cells(found, pair)]
        title = [] if len(found.pairs) == 1 else [f"{found.label(two)} - {found.label(one)}"]
        parts += ["\n".join([*title, *_columns(own)]) for own in _groups(rows, width)]
    star = "* is beside a p-value of the primary number that shows a difference"
    parts.append("\n".join(_wrapped([*found.said_below(), star, *found.left_out()], width)))
    return "\n\n".join(parts)


def _groups(rows: Sequence[Sequence[str]], width: int) -> list[list[Sequence[str]]]:
    """Rows as one table, or as two where they are too wide: the seeds have their own, with the difference again."""
    if len(next(_columns(rows))) <= width or len(rows[0]) <= _WITHOUT_SEEDS:
        return [list(rows)]
    of_seeds: list[Sequence[str]] = [[row[0], row[3], *row[_WITHOUT_SEEDS:]] for row in rows]
    return [[row[:_WITHOUT_SEEDS] for row in rows], of_seeds]


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table, the first as wide as any: the head, and the primary number between rules."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        first, *rest = row
        cells = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        return "  ".join([first.ljust(widths[0]), *cells])

    head, primary, *others = map(line, rows)
    rule = "-" * len(head)
    yield from (head, rule, primary.rstrip())
    if others:
        yield from (rule, *(other.rstrip() for other in others))


def _wrapped(lines: Sequence[str], width: int) -> list[str]:
    return [
        part
        for line in lines
        for part in wrap(line, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False) or [""]
    ]
