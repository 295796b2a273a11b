"""The value of a plot: its numbers as a table, its picture in a file or a notebook."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError
from rungwise.core.disk import replacing
from rungwise.core.output import frame_of, in_few_lines, notebook_html, one_line, some_of
from rungwise.runs.curves._panels import PlotPart

if TYPE_CHECKING:
    import os

    import pandas

FORMATS = ("svg", "png", "pdf")
"""Forms of a picture, by the endings of its file."""


@dataclass(frozen=True)
class CurvePlot:
    """Curves of systems, and the picture of them.

    Attributes:
        parts: Panels by their kind.
        left_out: What is not drawn, a line each, with the reason.
        width: Width of the picture in inches.
        height: Height of each row of panels in inches.
    """

    parts: tuple[PlotPart, ...]
    left_out: tuple[str, ...] = ()
    width: float = 9.0
    height: float = 3.2

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the curves."""
        return tuple(part.kind for part in self.parts)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture as SVG, PNG or PDF, by the ending of the file; the same curves give the same bytes.

        Raises:
            UserError: If the ending is another one, the file cannot be written, or matplotlib is not installed.
        """
        path = Path(path)
        form = form_of(path)
        content = self._drawn(form)
        with replacing(path) as draft:
            draft.write_bytes(content)
        return path

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Every point as comma-separated values, a line each; written to a file where one is named.

        Raises:
            UserError: If the file cannot be written.
        """
        file = io.StringIO(newline="")
        table = csv.writer(file, lineterminator="\n")
        columns = self._columns()
        table.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            table.writerow("" if isinstance(one, float) and math.isnan(one) else one for one in row)
        text = file.getvalue()
        if path is not None:
            with replacing(Path(path)) as draft:
                draft.write_text(text, encoding="utf-8")
        return text

    def to_frame(self) -> pandas.DataFrame:
        """A row for each point: kind, panel, curve, role, x, y, bounds of the band, and what the band is.

        Raises:
            UserError: If pandas is not installed.
        """
        return frame_of(self._columns(), "kind")

    def __repr__(self) -> str:
        facts = []
        for part in self.parts:
            names = dict.fromkeys(one.name for panel in part.panels for one in panel.curves if one.role == "system")
            panels = some_of([panel.title for panel in part.panels], 50)
            facts.append((part.kind, f"{panels}; {len(names)} curves: {one_line(', '.join(names), 50)}"))
        facts.append(("left out", some_of(self.left_out, 90) if self.left_out else ""))
        facts.append(("picture", f"{self.width:g} inches wide; save(path) writes SVG, PNG or PDF"))
        return in_few_lines(f"CurvePlot: {', '.join(self.kinds)}", facts)

    def _repr_svg_(self) -> str:
        return self._drawn("svg").decode()

    def _repr_html_(self) -> str:
        svg = self._repr_svg_()
        return notebook_html("", svg[svg.index("<svg") :], [f"left out: {one}" for one in self.left_out])

    def _drawn(self, form: str) -> bytes:
        from rungwise.runs.curves._matplotlib_picture import drawn

        return drawn(self.parts, form, self.width, self.height)

    def _columns(self) -> dict[str, list[Any]]:
        names = ("kind", "panel", "curve", "role", "x", "y", "low", "high", "band")
        rows = list(self._rows())
        return {name: [row[place] for row in rows] for place, name in enumerate(names)}

    def _rows(self) -> Iterator[Sequence[Any]]:
        for part in self.parts:
            for panel in part.panels:
                for one in panel.curves:
                    nothing = (math.nan,) * len(one.x)
                    points = zip(one.x, one.y, one.low or nothing, one.high or nothing, strict=True)
                    for x, y, low, high in points:
                        yield part.kind, panel.title, one.name, one.role, x, y, low, high, str(one.band)


def form_of(path: Path) -> str:
    """The form of a picture by the ending of its file.

    Raises:
        UserError: If it is none of svg, png and pdf.

    >>> form_of(Path("curves.SVG"))
    'svg'
    """
    form = path.suffix[1:].lower()
    if form not in FORMATS:
        raise UserError(f"{path}: a picture ends with .svg, .png or .pdf; name such a file")
    return form
