"""Text and tables of what ``rungwise calibrate`` learnt."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from rungwise.calibration import Calibration
from rungwise.core.output import printable
from rungwise.core.text import evenly_spread
from rungwise.evaluation.statistics import CrossValidation

if TYPE_CHECKING:
    from rich.table import Table

_EXAMPLES = 5
_LONGEST = 48
"""Largest number of characters of a caption."""

_METHODS = {
    "flat": "one threshold for all queries",
    "calibration": "this calibration",
    "captions": "the same in an index with captions",
    "best": "the best cut of each query",
}


def render_counts(relevant: NDArray[np.int64], candidates: int) -> Text:
    """Line on the pictures of the fit, and (queries,) numbers of those relevant to each caption.

    >>> render_counts(np.array([2, 0]), 1000).plain
    '2 captions and 1,000 pictures; relevant to a caption: 1.0 on average, 1 in the middle, none for 50.0 %'
    """
    return Text(
        f"{len(relevant):,} captions and {candidates:,} pictures; relevant to a caption: {relevant.mean():.1f} on"
        f" average, {np.median(relevant):.0f} in the middle, none for {100 * float((relevant == 0).mean()):.1f} %"
    )


def render_learnt(found: CrossValidation, calibration: Calibration, texts: Sequence[str]) -> Iterator[Table | Text]:
    """Tables and lines, at most 80 columns wide."""
    from rich import box
    from rich.table import Table

    table = Table(
        caption="every query was judged by what the others taught; the best cut needs to know the answer",
        box=box.SIMPLE_HEAD,
        padding=(0, 2, 0, 0),
    )
    table.add_column("where a list ends", no_wrap=True)
    table.add_column(f"CutF1(t={calibration.relevant_from:.4g})", justify="right", no_wrap=True)
    table.add_column("hits shown", justify="right", no_wrap=True)
    for method, name in _METHODS.items():
        if method not in found.cut_f1:
            continue
        table.add_row(name, f"{found.cut_f1[method]:.1f}", f"{found.shown[method]:.1f}")
    yield table
    if found.cut_f1["calibration"] < found.cut_f1["flat"]:
        yield Text("one threshold for all queries does better here: take more captions, or another --relevance")
    of_all, of_best = found.ece
    lines = [f"expected degrees are off by {of_best:.3f} for the ten best hits (ECE@10), {of_all:.4f} for all (ECE)"]
    if not math.isnan(found.none_auroc):
        lines.append(f"it tells queries without anything relevant from others: NoneAUROC {found.none_auroc:.3f}")
    lines.append("such as:")
    lines += [_example(found, texts[query], query) for query in _examples(found)]
    yield Text("\n".join(lines))


def _examples(found: CrossValidation) -> list[int]:
    """Queries from the fewest hits shown to the most, evenly spread."""
    order = np.lexsort((np.arange(len(found.cuts)), found.cuts))
    return [int(query) for query in order[evenly_spread(len(order), _EXAMPLES)]]


def _example(found: CrossValidation, text: str, query: int) -> str:
    plain = printable(" ".join(text.split()))
    short = plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1].rstrip() + "\u2026"
    shown, right, relevant = int(found.cuts[query]), int(found.right[query]), int(found.relevant[query])
    said = f"shows {shown}, {right} right" if shown else "shows nothing"
    return f'  "{short}": {said}, of {relevant}'
