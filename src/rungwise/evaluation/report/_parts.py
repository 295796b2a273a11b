"""HTML parts of the sections of a report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def section(title: str, content: str, note: str = "") -> str:
    """HTML section of a page: a heading and a remark in plain text, and the content in HTML.

    >>> section("Numbers", "<p>1</p>", "a & b")
    '<section><h2>Numbers</h2><p class=note>a &amp; b</p><p>1</p></section>'
    """
    return f"<section><h2>{escape(title)}</h2>{f'<p class=note>{escape(note)}</p>' if note else ''}{content}</section>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """HTML table of plain cells that scrolls sideways where the page is too narrow.

    >>> table(["measure"], [["R@1 <"]]).partition("<tbody>")[2]
    '<tr><td>R@1 &lt;</td></tr></tbody></table></div>'
    """
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    whole = [[escape(cell.replace(", ", ",\u00a0") if "[" in cell else cell) for cell in row] for row in rows]
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in whole)
    return f"<div class=scroll><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
