"""Tables of plain cells for papers, pages, notebooks and pandas: Markdown, LaTeX, HTML, a frame.

A value that prints as tables derives from :class:`InTables` and says what its cells are; how they are written, escaped
and laid out is said here, once for all values. The style of a notebook's output takes the colours of the page around
it, since the theme of a notebook does not follow the reader's system.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from rungwise.core._errors import MissingExtraError
from rungwise.core.output._html_page import whole_characters
from rungwise.core.output._printable import printable
from rungwise.core.output._short_repr import short_repr

if TYPE_CHECKING:
    import pandas

_SPECIAL_IN_LATEX = {character: "\\" + character for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "†": r"\dag{}",
}

_STYLE = """<style>
.rungwise { font: 14px/1.45 system-ui, sans-serif; max-width: 62rem; color: inherit; text-align: left; }
.rungwise .title { font-weight: 600; margin: 0 0 .4rem; overflow-wrap: anywhere; }
.rungwise .note { font-size: 12.5px; opacity: .75; margin: .25rem 0 0; overflow-wrap: anywhere; }
.rungwise .scroll { overflow-x: auto; }
.rungwise table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .2rem 0 .5rem; border: 0;
  color: inherit; background: none; font-size: inherit; }
.rungwise th, .rungwise td { padding: .2rem .8rem; border: 0; text-align: right; background: none; max-width: 30rem;
  border-bottom: 1px solid color-mix(in srgb, currentColor 22%, transparent); overflow-wrap: anywhere; }
.rungwise thead th { border-bottom-color: color-mix(in srgb, currentColor 55%, transparent); font-weight: 600; }
.rungwise .left { text-align: left; }
.rungwise th:first-child, .rungwise td:first-child { padding-left: 0; }
.rungwise .pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: .7rem;
  margin: .3rem 0; }
.rungwise figure { margin: 0; padding: 0; min-width: 0; border-top: 5px solid var(--band, transparent); }
.rungwise img { display: block; width: 100%; height: 7.5rem; object-fit: contain; margin: 0;
  background: color-mix(in srgb, currentColor 7%, transparent); }
.rungwise .missing { display: grid; place-items: center; height: 7.5rem; padding: .4rem; font-size: 12px;
  text-align: center; overflow: hidden; background: color-mix(in srgb, currentColor 7%, transparent); }
.rungwise figcaption { font-size: 12.5px; line-height: 1.35; padding: .2rem 0; overflow-wrap: anywhere; }
.rungwise .key { display: inline-block; width: .75em; height: .75em; border-radius: 2px; background: var(--band); }
.rungwise .end { grid-column: 1 / -1; font-size: 12.5px; opacity: .85; margin: 0; padding-top: .3rem;
  border-top: 2px dashed color-mix(in srgb, currentColor 45%, transparent); }
</style>"""


@dataclass(frozen=True)
class TextTable:
    r"""A table of plain texts.

    Attributes:
        head: Names of the columns.
        rows: Cells, as many in each row as there are columns.
        left: Names of the columns of words, which begin at the left; numbers end at the right.
        title: Name of the table; empty for none.
        strong: Row and column, from 0, of the cells that stand out in bold.

    >>> table = TextTable(("measure", "a & b"), (("R@1", "40.0 %"),), frozenset({"measure"}))
    >>> print(table.markdown())
    | measure | a & b |
    |:--|--:|
    | R@1 | 40.0 % |
    >>> print(table.latex())
    \begin{tabular}{lr}
    \toprule
    measure & a \& b \\
    \midrule
    R@1 & 40.0 \% \\
    \bottomrule
    \end{tabular}
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: frozenset[str] = frozenset()
    title: str = ""
    strong: frozenset[tuple[int, int]] = frozenset()

    __repr__ = short_repr

    def markdown(self) -> str:
        """The table in GitHub's Markdown."""
        rows = self._written(_in_markdown, "**{}**")
        lines = [f"| {' | '.join(cells)} |" for cells in ([_in_markdown(name) for name in self.head], *rows)]
        rule = "|".join(":--" if name in self.left else "--:" for name in self.head)
        return "\n".join([lines[0], f"|{rule}|", *lines[1:]])

    def latex(self) -> str:
        """The table as a ``tabular`` with the rules of the package booktabs."""
        columns = "".join("l" if name in self.left else "r" for name in self.head)
        rows = self._written(_in_latex, r"\textbf{{{}}}")
        head, *body = (rf"{' & '.join(cells)} \\" for cells in ([_in_latex(name) for name in self.head], *rows))
        parts = [r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
        return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *parts])

    def html(self) -> str:
        """The table in HTML, which scrolls sideways where the page is too narrow."""
        sides = [' class="left"' if name in self.left else "" for name in self.head]

        def line(tag: str, texts: Iterable[str]) -> str:
            return "".join(f"<{tag}{side}>{text}</{tag}>" for side, text in zip(sides, texts, strict=True))

        title = f'<p class="title">{escape(plain(self.title))}</p>' if self.title else ""
        body = "".join(f"<tr>{line('td', cells)}</tr>" for cells in self._written(_in_html, "<strong>{}</strong>"))
        head = f"<thead><tr>{line('th', map(_in_html, self.head))}</tr></thead>"
        return f'{title}<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>'

    def _written(self, write: Callable[[str], str], strong: str) -> Iterator[list[str]]:
        """Cells as they are written in a language, row by row, with its form of bold text."""
        for at, cells in enumerate(self.rows):
            yield [
                strong.format(write(cell)) if (at, place) in self.strong else write(cell)
                for place, cell in enumerate(cells)
            ]


class InTables(ABC):
    """What prints as tables with remarks below: the same cells in Markdown, LaTeX and HTML."""

    @abstractmethod
    def _tables(self) -> list[TextTable]:
        """The tables, with rounded numbers as people read them."""

    @abstractmethod
    def _title(self) -> str:
        """One line that names the value."""

    @abstractmethod
    def _below(self) -> list[str]:
        """Remarks that belong below the tables, one line each."""

    def to_markdown(self) -> str:
        """The tables in Markdown, and the notes below them in one line."""
        return markdown_text(self._tables(), self._below())

    def to_latex(self) -> str:
        """The tables in LaTeX for the package booktabs, and the notes as a comment."""
        return latex_text(self._tables(), self._below())

    def _repr_html_(self) -> str:
        return notebook_html(self._title(), "".join(one.html() for one in self._tables()), self._below())


def markdown_text(tables: Iterable[TextTable], notes: Sequence[str]) -> str:
    """Tables in Markdown, and notes below them in one line."""
    parts = [one.markdown() for one in tables]
    return "\n\n".join([*parts, "; ".join(map(_in_markdown, notes))] if notes else parts)


def latex_text(tables: Iterable[TextTable], notes: Sequence[str]) -> str:
    """Tables in LaTeX for the package booktabs, and notes below them as a comment."""
    parts = [one.latex() for one in tables]
    return "\n\n".join([*parts, "% " + "; ".join(map(plain, notes))] if notes else parts)


def notebook_html(title: str, body: str, notes: Iterable[str] = ()) -> str:
    """What a notebook shows of a value: no script, nothing fetched, and the colours of the page around it.

    Args:
        title: Plain text above the body; empty for none.
        body: HTML. Inside are tables of :class:`TextTable`; or ``<div class="pictures">`` with a ``figure`` each, whose
            colour is ``--band``.
        notes: Plain texts below the body, a line each.
    """
    head = f'<p class="title">{escape(plain(title))}</p>' if title else ""
    below = "".join(f'<p class="note">{escape(plain(note))}</p>' for note in notes)
    return whole_characters(f'{_STYLE}<div class="rungwise">{head}{body}{below}</div>')


def facts_html(head: str, facts: Iterable[tuple[str, str]]) -> str:
    """What a notebook shows of a value that :func:`~rungwise.core.output.in_few_lines` prints: a row for each fact."""
    rows = (
        f'<tr><td class="left">{escape(plain(name))}</td><td class="left">{escape(plain(text))}</td></tr>'
        for name, text in facts
        if text
    )
    return notebook_html(head, f"<table>{''.join(rows)}</table>")


def frame_of(columns: Mapping[str, Sequence[Any]], index: str) -> pandas.DataFrame:
    """A frame of pandas with these columns, of which one is the index.

    Raises:
        UserError: If pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError("pandas", "to_frame()") from error
    return pandas.DataFrame(dict(columns)).set_index(index)


def plain(text: str) -> str:
    r"""The text in one printable line.

    >>> plain("a\n\x1b[31mdog")
    'a \\x1b[31mdog'
    """
    return printable(" ".join(text.split()))


def _in_html(cell: str) -> str:
    # An interval stays in one line.
    return escape(plain(cell).replace(", ", ",\u00a0") if "[" in cell else plain(cell))


def _in_markdown(cell: str) -> str:
    text = plain(cell).replace("\\", "\\\\")
    for mark in "|<`":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("](", "]\\(")


def _in_latex(cell: str) -> str:
    text = "".join(_SPECIAL_IN_LATEX.get(character, character) for character in plain(cell))
    return "{}" + text if text.startswith(("[", "*")) else text  # which the \\ of the row before would take as its own
