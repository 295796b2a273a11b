"""The picture of a plot, by matplotlib: without its global figures, and the same bytes for the same curves."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rungwise.core import MissingExtraError
from rungwise.core.output import printable
from rungwise.runs.curves._panels import Panel, PlotCurve, PlotPart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Colours that people tell apart who see no red or no green (Okabe and Ito 2008)."""
_STYLES = ("-", "--", "-.", (0, (1, 1.2)), (0, (6, 1.5, 1.5, 1.5, 1.5, 1.5)))
"""Styles of lines, which tell systems apart in print; with the colours they repeat after thirty systems."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_GREY = "#555555"
_FEW = 25
"""Largest number of points of a curve that are marked each."""
_MOST_COLUMNS = 3
"""Largest number of panels beside each other."""
_NAME = 56
"""Longest line of a name in a legend, in characters; longer names go on below."""
_LETTER = 0.075
"""Width of a letter of the legend and the notes, in inches."""
_LINE = 0.165
"""Height of a line of the legend and the notes, in inches."""
_SETTINGS: Any = {
    "svg.hashsalt": "rungwise",
    # Text stays text: files are small, words are found, and programs for the blind read them.
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.7,
    "text.parse_math": False,
    "axes.formatter.useoffset": False,
}
_METADATA: Mapping[str, Mapping[str, Any]] = {
    "svg": {"Date": None, "Creator": "rungwise plot"},
    "png": {"Software": "rungwise plot"},
    "pdf": {"CreationDate": None, "Creator": "rungwise plot", "Producer": None},
}


def drawn(parts: Sequence[PlotPart], form: str, width: float, height: float) -> bytes:
    """A picture as SVG, PNG or PDF.

    Args:
        parts: What is drawn, one part below the other.
        form: ``svg``, ``png`` or ``pdf``.
        width: Width in inches.
        height: Height of each row of panels in inches.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    file = io.BytesIO()
    try:  # parts of matplotlib are imported when it draws
        import matplotlib

        with matplotlib.rc_context(dict(_SETTINGS)):
            figure = _figure(parts, width, height)
            figure.savefig(file, format=form, dpi=160, metadata=dict(_METADATA[form]), facecolor="white")
    except ImportError as error:
        raise MissingExtraError("matplotlib", "a plot") from error
    return file.getvalue()


def _figure(parts: Sequence[PlotPart], width: float, height: float) -> Figure:
    """All parts, each with its title, its panels, its legend and its notes, in bands whose heights are known."""
    from matplotlib.figure import Figure

    looks = _looks(parts)
    bands: list[tuple[float, Any]] = []
    for part in parts:
        title = [
            line
            for whole in part.title.splitlines()
            for line in textwrap.wrap(printable(whole), max(20, int(width / 0.09)))
        ]
        columns = min(len(part.panels), _MOST_COLUMNS)
        rows = -(-len(part.panels) // columns)
        handles = _handles(part, looks)
        across, legend_lines = _legend_shape(handles, width)
        notes = [line for note in part.notes for line in textwrap.wrap(printable(note), max(20, int(width / _LETTER)))]
        bands.append((rows * height + 0.2 * len(title), (part, title, rows, columns)))
        bands.append((0.12 + _LINE * (legend_lines + len(notes)) + 0.08, (handles, across, legend_lines, notes)))
    heights = [size for size, _ in bands]
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    inner = figure.subfigures(len(bands), 1, height_ratios=heights, hspace=0, squeeze=False)[:, 0]
    for below, (size, content) in zip(inner, bands, strict=True):
        if isinstance(content[0], PlotPart):
            part, title, rows, columns = content
            below.suptitle("\n".join(title), fontsize=10, fontweight="bold")
            axes = np.atleast_1d(below.subplots(rows, columns, squeeze=False)).ravel()
            for one, panel in zip(axes, part.panels, strict=False):
                _draw_panel(one, panel, looks, _ends_agree(part), width / columns)
            for one in axes[len(part.panels) :]:
                one.set_visible(False)
        else:
            _draw_legend(below, size, *content)
    return figure


def _system_names(part: PlotPart) -> list[str]:
    return list(dict.fromkeys(one.name for panel in part.panels for one in panel.curves if one.role == "system"))


def _looks(parts: Sequence[PlotPart]) -> dict[str, dict[str, Any]]:
    """Colour, style and marker of each system, the same in all parts."""
    names = list(dict.fromkeys(name for part in parts for name in _system_names(part)))
    return {
        name: {
            "color": _COLOURS[place % len(_COLOURS)],
            "linestyle": _STYLES[(place + place // len(_COLOURS)) % len(_STYLES)],
            "marker": _MARKERS[place % len(_MARKERS)],
        }
        for place, name in enumerate(names)
    }


_ROLES: Mapping[str, Mapping[str, Any]] = {
    "ideal": {"color": "black", "linestyle": (0, (4, 1.5)), "linewidth": 1.1},
    "chance": {"color": _GREY, "linestyle": (0, (1, 2)), "linewidth": 1.3},
}


def _draw_panel(axes: Axes, panel: Panel, looks: Mapping[str, Mapping[str, Any]], agree: bool, room: float) -> None:
    """Draw one pair of axes, for which there are so many inches across."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axes.set_title(printable(panel.title))
    axes.set_xlabel("\n".join(textwrap.wrap(printable(panel.x_label), max(12, int(room / 0.095)))))
    axes.set_ylabel(printable(panel.y_label))
    systems = sum(one.role == "system" for one in panel.curves)
    shade = 0.18 if systems <= 4 else 0.4 / systems
    place = {word: at for at, word in enumerate(panel.categories)}
    for curve in panel.curves:
        x = np.array([place[str(one)] if panel.categories else float(one) for one in curve.x])
        y = np.array(curve.y)
        if curve.role != "system":
            axes.plot(x, y, **_ROLES[curve.role])
            continue
        look = dict(looks[curve.name])
        marker = look.pop("marker")
        axes.plot(x, y, marker=marker if _is_marked(curve) else None, markersize=4, **look)
        if curve.low:
            low, high = np.array(curve.low), np.array(curve.high)
            if len(x) == 1 or panel.categories:
                axes.errorbar(x, y, yerr=[y - low, high - y], fmt="none", ecolor=look["color"], capsize=3, linewidth=1)
            else:
                axes.fill_between(x, low, high, color=look["color"], alpha=shade, linewidth=0)
        marked = [one for one in dict.fromkeys(curve.kept) if math.isfinite(y[int(one) - 1])]
        if marked:
            axes.plot(
                marked, [y[int(one) - 1] for one in marked], linestyle="none", marker="o", markersize=6.5,
                markerfacecolor="white", markeredgecolor=look["color"], markeredgewidth=1.6, zorder=4,
            )  # fmt: skip
        for at, name in curve.ends:
            colour = _GREY if agree else look["color"]
            axes.axvline(at, color=colour, linewidth=0.9, linestyle=_end_style(name))
    if panel.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="x", which="minor", length=0)
        values = [float(one) for curve in panel.curves for one in curve.x]
        if max(values) / min(values) > 3000:
            axes.xaxis.set_major_locator(LogLocator(base=10))
    elif panel.categories:
        axes.set_xticks(list(place.values()), [textwrap.shorten(printable(one), 24) for one in place])
        axes.set_xlim(-0.4, len(place) - 0.6)
        if sum(map(len, place)) > 40:
            axes.tick_params(axis="x", rotation=25)
    elif panel.whole_x:
        longest = max(float(one) for curve in panel.curves for one in curve.x)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_xlim(1 - max(0.5, 0.03 * longest), longest + max(0.5, 0.03 * longest))
    if panel.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        bottom, top = axes.get_ylim()
        if top < 100 * bottom:
            axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(NullFormatter())


def _is_marked(curve: PlotCurve) -> bool:
    """Whether each point of a curve has a marker: of few points, and of a point alone, which makes no line."""
    return sum(map(math.isfinite, curve.y)) == 1 or (len(curve.x) <= _FEW and not curve.kept)


def _end_style(name: str) -> Any:
    return (0, (2, 2)) if name == "end of warm-up" else (0, (7, 3))


def _ends_agree(part: PlotPart) -> bool:
    """Whether all systems end their warm-ups and stages at the same epochs, so that one grey line is enough."""
    ends = {one.ends for panel in part.panels for one in panel.curves if one.role == "system"}
    return len(ends) == 1


def _handles(part: PlotPart, looks: Mapping[str, Mapping[str, Any]]) -> list[tuple[Line2D, str]]:
    """Lines of the legend, with their words."""
    from matplotlib.lines import Line2D

    found: list[tuple[Line2D, str]] = []
    curves = [one for panel in part.panels for one in panel.curves]
    for name in _system_names(part):
        look = dict(looks[name])
        if all(not _is_marked(one) for one in curves if one.name == name):
            look.pop("marker")
        found.append((Line2D([], [], markersize=4, **look), "\n".join(textwrap.wrap(printable(name), _NAME)) or "-"))
    for role, words in (("ideal", "best possible order"), ("chance", "chance")):
        if any(one.role == role for one in curves):
            found.append((Line2D([], [], **_ROLES[role]), words))
    if any(one.kept for one in curves):
        kept = Line2D(
            [], [], linestyle="none", marker="o", markersize=6.5, markerfacecolor="white", markeredgecolor=_GREY
        )
        several = any(len(one.kept) > 1 for one in curves)
        found.append((kept, "kept epoch" + (" of a seed" if several else "")))
    agree = _ends_agree(part)
    for name in dict.fromkeys(name for one in curves for _, name in one.ends):
        line = Line2D([], [], color=_GREY, linewidth=0.9, linestyle=_end_style(name))
        found.append((line, name if agree else f"{name}, in the colour of its system"))
    return found


def _legend_shape(handles: Sequence[tuple[Any, str]], width: float) -> tuple[int, int]:
    """Columns of a legend, and its height in lines of text."""
    longest = max((len(line) for _, words in handles for line in words.splitlines()), default=1)
    across = max(1, min(len(handles), int(width / (longest * _LETTER + 0.75))))
    rows = -(-len(handles) // across)
    # matplotlib fills columns from the top; a column is as high as its entries together.
    tall = max(
        sum(len(words.splitlines()) for _, words in handles[start : start + rows])
        for start in range(0, max(len(handles), 1), max(rows, 1))
    )
    return across, tall


def _draw_legend(
    below: SubFigure, size: float, handles: Sequence[tuple[Line2D, str]], across: int, lines: int, notes: Sequence[str]
) -> None:
    _legend(below, handles, across)
    top = 1.0 - (0.1 + _LINE * lines) / size
    if notes:
        below.text(0.012, top, "\n".join(notes), fontsize=7.5, color="#333333", va="top", linespacing=1.35)


def _legend(below: SubFigure, handles: Sequence[tuple[Line2D, str]], across: int) -> None:
    legend = below.legend(
        [handle for handle, _ in handles],
        [words for _, words in handles],
        loc="upper center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=across,
        frameon=False,
        fontsize=8.5,
        handlelength=3.2,
        borderpad=0.1,
        labelspacing=0.25,
        columnspacing=1.6,
    )
    legend.set_in_layout(False)
