"""A result as a table for the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rungwise.evaluation.result import Result

if TYPE_CHECKING:
    from rich.table import Table


def render_table(result: Result) -> Table:
    """Both directions side by side, sums below; at most 80 columns wide.

    >>> import numpy as np
    >>> from rich.console import Console
    >>> from rungwise.evaluation import evaluate
    >>> result = evaluate(similarity=np.eye(2), image_of_caption=[0, 1], measures=["R@1", "MedR"], data_name="two")
    >>> table = render_table(result)
    >>> table.title, table.row_count
    ('two, protocol full', 2)
    """
    from rich.table import Table

    title = f"protocol {result.protocol}"
    table = Table(title=f"{result.data_name}, {title}" if result.data_name else title, caption=_caption(result))
    table.add_column("measure")
    table.add_column("image to text", justify="right")
    table.add_column("text to image", justify="right")
    table.add_column("unit")
    both = list(dict.fromkeys(name.partition("/")[2] for name in result.numbers if "/" in name))
    for measure in both:
        cells = [_number(result[f"{way}/{measure}"], result.units[f"{way}/{measure}"]) for way in ("i2t", "t2i")]
        table.add_row(measure, *cells, result.units[f"i2t/{measure}"])
    sums = [name for name in result.numbers if "/" not in name]
    if sums:
        table.add_section()
    for name in sums:
        table.add_row(name, "", _number(result[name], result.units[name]), f"{result.units[name]}, both directions")
    return table


def _number(value: float, unit: str) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if unit == "correlation" else f"{value:.1f}"


def _caption(result: Result) -> str:
    folds = len(result.gallery["i2t"])
    least, most = result.captions_per_image["min"], result.captions_per_image["max"]
    per_image = f"{least:.0f}" if least == most else f"{least:.0f} to {most:.0f}"
    images, captions = result.gallery["t2i"][0], result.gallery["i2t"][0]
    lines = [
        f"{images} images x {captions} captions ({per_image} an image)"
        + (f", mean of {folds} folds" if folds > 1 else "")
    ]
    for name, counts in result.remarks.items():
        lines += [f"{name}: {count} of {result.queries[name[:3]]} queries {reason}" for reason, count in counts.items()]
    return "\n".join(lines)
