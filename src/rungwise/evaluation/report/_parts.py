"""HTML parts of the sections of a report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rungwise.core.output import TextTable


def section(title: str, content: str, note: str = "") -> str:
    """HTML section of a page: a heading and a remark in plain text, and the content in HTML.

    >>> section("Numbers", "<p>1</p>", "a & b")
    '<section><h2>Numbers</h2><p class=note>a &amp; b</p><p>1</p></section>'
    """
    return f"<section><h2>{escape(title)}</h2>{f'<p class=note>{escape(note)}</p>' if note else ''}{content}</section>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """HTML table of plain cells, laid out by the style of the report."""
    return TextTable(head, rows).html()
