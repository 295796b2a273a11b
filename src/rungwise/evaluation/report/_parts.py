"""HTML parts of the sections of a report."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from rungwise.core.output import TextTable, whole_characters
from rungwise.evaluation.analysis import Diagnostics
from rungwise.metrics import Direction


def section(title: str, content: str, note: str = "") -> str:
    """HTML section of a page: a heading and a remark in plain text, and the content in HTML.

    >>> section("Numbers", "<p>1</p>", "a & b")
    '<section><h2>Numbers</h2><p class=note>a &amp; b</p><p>1</p></section>'
    """
    return f"<section><h2>{escape(title)}</h2>{f'<p class=note>{escape(note)}</p>' if note else ''}{content}</section>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], title: str, *, tall: bool = False) -> str:
    """HTML table of plain cells, laid out by the style of the report, with a link that saves it.

    Args:
        head: Names of the columns.
        rows: Cells.
        title: Plain text that names the table to readers who cannot see it, and its file.
        tall: Whether a long table scrolls by itself.
    """
    kind = "scroll tall" if tall else "scroll"
    reached = f'<div class="{kind}" tabindex=0 role=region aria-label="{escape(title)}">'
    html = TextTable(head, rows).html().replace('<div class="scroll">', reached, 1)
    return html + saved_table(head, rows, title)


def saved_table(head: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> str:
    """Link that saves the cells of a table as a CSV file."""
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows([head, *rows])
    return saved(file.getvalue(), "text/csv;charset=utf-8", title, "csv")


def saved(content: str, kind: str, title: str, ending: str) -> str:
    """Link that saves a text as a file; the link holds the file, so that nothing is asked of the network.

    >>> saved("a,b", "text/csv", "By rung", "csv")
    '<p class=save><a download="by-rung.csv" href="data:text/csv;base64,YSxi" aria-label="By rung as CSV">CSV</a></p>'
    """
    data = base64.b64encode(whole_characters(content).encode()).decode()
    stem = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "table"
    return (
        f'<p class=save><a download="{stem}.{ending}" href="data:{kind};base64,{data}"'
        f' aria-label="{escape(title)} as {ending.upper()}">{ending.upper()}</a></p>'
    )


def images_of(found: Diagnostics, way: Direction) -> NDArray[np.int64]:
    """(queries,) position of the image that each query is, or was written for."""
    return found.data.image_of_caption if way == "t2i" else np.arange(len(found.data))
