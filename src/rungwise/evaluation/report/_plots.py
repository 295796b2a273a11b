"""Plots as SVG without script, fonts or requests: inline with the page's colours, and as a file with its own.

Marks have classes, and :func:`mark_style` gives these their colours. A page takes its own colours, so that dark pages
stay dark; a file that is saved takes those of a light page. Numbers of an axis are few and round, and names below bars
are turned or thinned where they would meet, by the measured width of their letters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core.output import cut
from rungwise.evaluation.analysis import MeanCurve
from rungwise.evaluation.report._parts import saved

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 12, 42
FONT = 11

_TURN = 40
"""Degrees by which names are turned that would meet."""
_NARROW = {**dict.fromkeys("ijlI.,:;|!'()[] ", 0.3), **dict.fromkeys("frt-/", 0.4), **dict.fromkeys("mwMW%@", 0.9)}
"""Widths of letters as shares of the size of the font, a little more than those of usual fonts without serifs."""
_LONGEST = 18
"""Largest number of letters of a name below a bar."""

COLOURS = {"a": "#2563b0", "b": "#c2571a", "ink": "#1d2129", "soft": "#5b6270", "line": "#d9dce2"}
"""Colours of a file that is saved: those of a light page, by the names that the pages' style gives them."""


def mark_style(colours: Mapping[str, str] | None = None) -> str:
    """CSS of marks, axes and texts of plots.

    Args:
        colours: Colours by name, as in :data:`COLOURS`; None takes those of the page around.

    >>> ".s0{color:var(--a)}" in mark_style(), ".s0{color:#2563b0}" in mark_style(COLOURS)
    (True, True)
    """
    a, b, ink, soft, line = (f"var(--{name})" if colours is None else colours[name] for name in COLOURS)
    return (
        f".s0{{color:{a}}}.s1{{color:{b}}}.all{{color:{soft}}}\n"
        f"svg text{{font:{FONT}px system-ui,'Helvetica Neue',Arial,sans-serif;fill:{soft}}}svg .label{{fill:{ink}}}\n"
        f".grid{{stroke:{line}}}.axis{{stroke:{soft}}}\n"
        "polyline{fill:none;stroke:currentColor;stroke-width:2}.band{fill:currentColor;fill-opacity:.2}\n"
        "polyline.chance{stroke-dasharray:6 4;stroke-width:1.5}polyline.ideal{stroke-dasharray:1.5 3}\n"
        ".s1.chance{stroke-dashoffset:5}.bar{fill:currentColor}.whisker{stroke:currentColor}\n"
        f".box{{fill:currentColor;fill-opacity:.35;stroke:currentColor}}.median{{stroke:{ink};stroke-width:2}}\n"
        ".dots{fill:none;stroke:currentColor;stroke-width:4;stroke-linecap:round;stroke-opacity:.6}\n"
    )


@dataclass(frozen=True)
class Axis:
    """Range and scale of one axis.

    On a logarithmic scale ``low`` must be above 0. The label should have the unit.

    >>> Axis("rank", 1, 100, logarithmic=True).at(10), Axis("share", 0, 100).ticks()
    (0.5, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0])
    """

    label: str
    low: float
    high: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Place of a value on the axis, 0 at the lower end and 1 at the upper one; values beyond are put on the end."""
        if self.high == self.low:
            return 0.5
        value = max(self.low, min(value, self.high))
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """About five round values in the range."""
        if self.logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            tens = [one for power in powers if self._holds(one := 10.0**power)]
            finer = [one for power in powers for part in (1, 2, 5) if self._holds(one := part * 10.0**power)]
            return (tens if len(tens) > 2 else finer) or [self.low]
        if self.high == self.low:
            return [self.low]
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = min((one * power for one in (1, 2, 5, 10)), key=lambda one: abs(one - rough))
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [round((first + number) * step, 12) for number in range(count)]

    def _holds(self, value: float) -> bool:
        return self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)


@dataclass(frozen=True)
class Key:
    """One entry of a legend: a mark as it is drawn, and what it means.

    Attributes:
        mark: Kind of the mark.
        classes: Its classes, which give it colour and dashes.
        name: What it means.
    """

    mark: Literal["line", "area", "dot", "box"]
    classes: str
    name: str

    def drawn(self, x: float = 0, y: float = 0) -> str:
        """SVG of the mark, 22 wide and 10 high."""
        left, right, middle = f"{x:g}", f"{x + 22:g}", f"{y + 5:g}"
        if self.mark == "line":
            return f'<polyline class="{self.classes}" points="{left},{middle} {right},{middle}"/>'
        if self.mark == "dot":
            return f'<path class="{self.classes}" d="M{x + 11:g} {middle}h0"/>'
        if self.mark == "box":
            return f'<line class="{self.classes}" x1="{left}" x2="{right}" y1="{middle}" y2="{middle}"/>'
        return f'<rect class="{self.classes}" x="{left}" y="{y:g}" width="22" height="10"/>'


@dataclass(frozen=True)
class Figure:
    """A plot with its title and legend.

    Attributes:
        title: Title above the plot.
        drawn: SVG of axes and marks.
        height: Height of the plot; all are :data:`WIDTH` wide.
        keys: Entries of the legend.
        note: What the plot shows, in sentences.
    """

    title: str
    drawn: str
    height: float
    keys: Sequence[Key] = ()
    note: str = ""

    def html(self) -> str:
        """The figure for a page, with a link that saves it as a file."""
        keys = "".join(
            f"<span><svg class=swatch viewBox='0 0 22 10' aria-hidden=true>{key.drawn()}</svg>{escape(key.name)}</span>"
            for key in self.keys
        )
        title = escape(self.title)
        note = f"<p class=note>{escape(self.note)}</p>" if self.note else ""
        link = saved(self.file(), "image/svg+xml", self.title, "svg")
        return (
            f"<figure><figcaption>{title}</figcaption><p class=legend>{keys}</p>"
            f'<svg viewBox="0 0 {WIDTH} {self.height:g}" role="img" aria-label="{title}">{self.drawn}</svg>'
            f"{note}{link}</figure>"
        )

    def file(self) -> str:
        """The figure as an SVG file that needs no other: with its title, legend and colours."""
        words, lines = _wrapped(self.title, WIDTH - 2 * RIGHT), []
        for number, line in enumerate(words):
            lines.append(
                f'<text class="label" font-weight="600" x="{RIGHT}" y="{20 + 15 * number}">{escape(line)}</text>'
            )
        x, y = float(RIGHT), 20 + 15 * len(words) - 6
        for key in self.keys:
            wide = 28 + text_width(key.name) + 14
            if x > RIGHT and x + wide > WIDTH:
                x, y = float(RIGHT), y + 16
            lines.append(f'{key.drawn(x, y)}<text x="{x + 28:g}" y="{y + 9}">{escape(key.name)}</text>')
            x += wide
        down = y + (18 if self.keys else 0)
        high = down + self.height
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high:g}" width="{2 * WIDTH}"'
            f' height="{2 * high:g}"><title>{escape(self.title)}</title><style>{mark_style(COLOURS)}</style>'
            f'<rect width="{WIDTH}" height="{high:g}" fill="#fff"/>{"".join(lines)}'
            f'<g transform="translate(0 {down:g})">{self.drawn}</g></svg>'
        )


def text_width(text: str, size: float = FONT) -> float:
    """Width of a text in a usual font without serifs, rather too much than too little.

    >>> text_width("iii") < text_width("mmm"), round(text_width("100-199"))
    (True, 47)
    """
    return size * sum(_NARROW.get(one, 0.64 if one.isascii() and not one.isupper() else 0.75 if one.isascii() else 1.0)
                      for one in text)  # fmt: skip


def lines(
    series: Mapping[str, MeanCurve], x: Axis, y: Axis, title: str, *, note: str = "", chance: str = "", ideal: str = ""
) -> Figure:
    """Figure of curves with their bands; dashed lines for a random order, dotted ones for the best.

    Args:
        series: Curves by name.
        x: Horizontal axis.
        y: Vertical axis.
        title: Title above the figure.
        note: What it shows, in sentences.
        chance: Meaning of the dashed lines; empty draws none.
        ideal: Meaning of the dotted lines; empty draws none.
    """
    frame = _Frame(y)
    below, above, keys = [], [], []
    for number, (name, curve) in enumerate(series.items()):
        own = f"s{number}"
        edge = [*zip(curve.x, curve.high, strict=True), *reversed(list(zip(curve.x, curve.low, strict=True)))]
        below.append(f'<polygon class="band {own}" points="{frame.points(x, y, edge)}"/>')
        above.append(_line(frame, x, y, curve.x, curve.value, own))
        keys.append(Key("line", own, name))
    keys.append(Key("area", "band all", "95 % interval"))
    for meaning, kind in ((chance, "chance"), (ideal, "ideal")):
        given = {f"s{number}": getattr(curve, kind) for number, curve in enumerate(series.values())}
        given = {own: values for own, values in given.items() if meaning and values.size}
        if not given:
            continue
        if len(given) > 1 and all(_same(values, given["s0"]) for values in given.values() if "s0" in given):
            given = {"all": max(given.values(), key=len)}  # one line for all
        longest = max(series.values(), key=lambda curve: len(curve.x)).x
        for own, values in given.items():
            at = longest if own == "all" else list(series.values())[int(own[1:])].x
            above.append(_line(frame, x, y, at, values, f"{kind} {own}"))
        keys.append(Key("line", f"{kind} all", meaning))
    return frame.figure([*below, *above], x, y, title, keys, note)


def bars(
    series: Mapping[str, Sequence[float]], groups: Sequence[str], y: Axis, title: str, x_label: str, note: str = ""
) -> Figure:
    """Figure of groups of bars, each group with one bar per series."""
    frame = _Frame(y, groups)
    marks = []
    wide = 0.8 * frame.room / max(1, len(series))
    for number, values in enumerate(series.values()):
        for group, value in enumerate(values):
            at, up = frame.left + (group + 0.1) * frame.room + number * wide, frame.y(y, value)
            name = escape(f"{groups[group]}: {value:.4g}")
            marks.append(
                f'<rect class="bar s{number}" x="{at:.1f}" y="{up:.1f}" width="{max(0.5, wide - 1):.1f}"'
                f' height="{max(0.0, HEIGHT - BOTTOM - up):.1f}"><title>{name}</title></rect>'
            )
    keys = [Key("area", f"bar s{number}", name) for number, name in enumerate(series)]
    return frame.figure(marks, Axis(x_label, 0, 0), y, title, keys, note)


def scatter(series: Mapping[str, Points], x: Axis, y: Axis, title: str, note: str = "") -> Figure:
    """Figure of dots, with one colour per series."""
    frame = _Frame(y)
    marks = []
    for number, points in enumerate(series.values()):
        places = "".join(f"M{frame.x(x, a):.1f} {frame.y(y, b):.1f}h0" for a, b in points)
        marks.append(f'<path class="dots s{number}" d="{places}"/>')
    keys = [Key("dot", f"dots s{number}", name) for number, name in enumerate(series)]
    return frame.figure(marks, x, y, title, keys, note)


def spreads(
    groups: Sequence[str], quantiles: Sequence[Sequence[float]], y: Axis, title: str, x_label: str, note: str = ""
) -> Figure:
    """Figure of boxes, one per group, from 5, 25, 50, 75 and 95 % quantiles."""
    frame = _Frame(y, groups)
    marks = []
    for group, values in enumerate(quantiles):
        middle, half = frame.left + (group + 0.5) * frame.room, min(0.3 * frame.room, 30)
        low, quarter, median, three, high = (frame.y(y, value) for value in values)
        marks.append(
            f'<line class="whisker s0" x1="{middle:.1f}" x2="{middle:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
            f'<rect class="box s0" x="{middle - half:.1f}" y="{three:.1f}" width="{2 * half:.1f}"'
            f' height="{max(0.5, quarter - three):.1f}"/>'
            f'<line class="median" x1="{middle - half:.1f}" x2="{middle + half:.1f}" y1="{median:.1f}"'
            f' y2="{median:.1f}"/>'
        )
    keys = [
        Key("box", "median", "median"),
        Key("area", "box s0", "middle half of the pairs"),
        Key("box", "whisker s0", "5 to 95 % of the pairs"),
    ]
    return frame.figure(marks, Axis(x_label, 0, 0), y, title, keys, note)


class _Frame:
    """Where things are: the room for the numbers of the vertical axis, and for names below."""

    def __init__(self, y: Axis, groups: Sequence[str] = ()) -> None:
        self.left = max(LEFT, 26 + max((text_width(_number(tick)) for tick in y.ticks()), default=0))
        self.room = (WIDTH - self.left - RIGHT) / max(1, len(groups))
        self.groups = [cut(name, _LONGEST) for name in groups]
        widest = max(map(text_width, self.groups), default=0)
        self.turned = widest + 6 > self.room
        turn = math.radians(_TURN)
        self.below = (widest * math.sin(turn) + FONT * math.cos(turn) - FONT) if self.turned else 0.0

    def x(self, axis: Axis, value: float) -> float:
        return self.left + axis.at(value) * (WIDTH - self.left - RIGHT)

    def y(self, axis: Axis, value: float) -> float:
        return HEIGHT - BOTTOM - axis.at(value) * (HEIGHT - TOP - BOTTOM)

    def points(self, x: Axis, y: Axis, points: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{self.x(x, a):.1f},{self.y(y, b):.1f}" for a, b in points)

    def figure(self, marks: Sequence[str], x: Axis, y: Axis, title: str, keys: Sequence[Key], note: str) -> Figure:
        floor, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        parts = []
        for tick in y.ticks():
            up = self.y(y, tick)
            parts.append(
                f'<line class="grid" x1="{self.left:.1f}" x2="{right}" y1="{up:.1f}" y2="{up:.1f}"/>'
                f'<text x="{self.left - 6:.1f}" y="{up + 4:.1f}" text-anchor="end">{_number(tick)}</text>'
            )
        parts += self._names() if self.groups else self._numbers(x)
        parts.append(f'<line class="axis" x1="{self.left:.1f}" x2="{right}" y1="{floor}" y2="{floor}"/>')
        height = HEIGHT + self.below
        middle, up = (self.left + right) / 2, (TOP + floor) / 2
        parts.append(
            f'<text class="label" x="{middle:.1f}" y="{height - 8:.1f}" text-anchor="middle">{escape(x.label)}</text>'
            f'<text class="label" transform="translate(12 {up:g}) rotate(-90)" text-anchor="middle">'
            f"{escape(y.label)}</text>"
        )
        return Figure(title, "".join([*parts, *marks]), round(height, 1), keys, note)

    def _numbers(self, x: Axis) -> list[str]:
        """Numbers of the horizontal axis, without those that would meet the one before."""
        shown, end = [], -math.inf
        for tick in x.ticks():
            at, text = self.x(x, tick), _number(tick)
            half = text_width(text) / 2
            if at - half < end + 4:
                continue
            end = at + half
            anchor = "end" if at + half > WIDTH else "middle"
            shown.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="{anchor}">{text}</text>')
        return shown

    def _names(self) -> list[str]:
        """Names of the groups: turned where they would meet, and every second or third where even these would."""
        every = max(1, math.ceil(1.3 * FONT / self.room)) if self.turned else 1
        shown = []
        for group, name in enumerate(self.groups):
            if group % every:
                continue
            at = self.left + (group + 0.5) * self.room
            place = f'x="{at:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle"'
            if self.turned:
                move = f"translate({at + 4:.1f} {HEIGHT - BOTTOM + 12}) rotate(-{_TURN})"
                place = f'transform="{move}" text-anchor="end"'
            shown.append(f"<text {place}>{escape(name)}</text>")
        return shown


def _line(frame: _Frame, x: Axis, y: Axis, at: NDArray[np.float64], values: NDArray[np.float64], classes: str) -> str:
    points = frame.points(x, y, zip(at.tolist(), values.tolist(), strict=True))
    return f'<polyline class="{classes}" points="{points}"/>'


def _same(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Whether two lines that begin together are one, as far as both go, and each is level."""
    return bool(np.ptp(one) == 0 and np.ptp(other) == 0 and one[0] == other[0])


def _wrapped(text: str, room: float) -> list[str]:
    found = [""]
    for word in text.split():
        longer = f"{found[-1]} {word}".strip()
        if found[-1] and 1.1 * text_width(longer) > room:
            found.append(word)
        else:
            found[-1] = longer
    return found


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"
