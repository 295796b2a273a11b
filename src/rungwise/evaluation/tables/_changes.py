"""Tables of what human judgements changed: numbers with the annotation alone beside those with human positives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rungwise.evaluation.result import Result
from rungwise.evaluation.statistics import number_text
from rungwise.metrics import DIRECTIONS

if TYPE_CHECKING:
    from rich.table import Table


def change_cells(result: Result) -> list[tuple[str, str, str, str]]:
    """Rows of name, number with the annotation alone, number with human positives, and the difference.

    >>> import numpy as np
    >>> from rungwise.evaluation.judgements import HumanPositives
    >>> from rungwise.evaluation._evaluate import evaluate_with_people
    >>> scores = np.array([[0.4, 0.9], [0.1, 0.8]])
    >>> change_cells(evaluate_with_people(
    ...     HumanPositives(np.array([[0, 1]])), similarity=scores, image_of_caption=[0, 1], measures=["R@1"]))
    [('i2t/R@1', '50.0', '100.0', '+50.0'), ('t2i/R@1', '50.0', '100.0', '+50.0')]
    """
    if result.judgements is None:
        return []
    rows = []
    for name, before in result.judgements.before.items():
        now, unit = result.numbers[name], result.units[name]
        difference = now - before
        shown = number_text(difference, unit)
        signed = f"+{shown}" if difference > 0 and shown.strip("0.") else shown
        rows.append((name, number_text(before, unit), number_text(now, unit), signed))
    return rows


def render_change(result: Result) -> Table | None:
    """Table of :func:`change_cells`, at most 80 columns wide; None where the annotation alone was not measured."""
    rows = change_cells(result)
    if not rows or result.judgements is None:
        return None
    from rich.table import Table

    said = result.judgements
    added = ", ".join(f"{way} {said.added[way]}" for way in DIRECTIONS)
    people = f"by {', '.join(said.graders)}" if said.graders else "by people without names"
    pairs = "1 pair was" if said.called_right == 1 else f"{said.called_right} pairs were"
    caption = (
        f"{pairs} called right {people} (mean grade from {said.right_from:g});"
        f" right answers that the annotation lacks: {added}"
    )
    table = Table(title="what the judgements changed", caption=caption)
    table.add_column("measure", overflow="fold")
    for name in ("annotation alone", "with judgements", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
