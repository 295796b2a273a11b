"""Plots as inline SVG without script, fonts or requests; the page gives the colours, so dark pages stay dark.

A page that shows them defines the classes ``axis``, ``grid``, ``s0`` and ``s1`` (first and second series) and gives
text its colour. Numbers of an axis are few and round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 12, 42


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
        """Place of a value on the axis, 0 at the lower end and 1 at the upper one."""
        if self.high == self.low:
            return 0.5
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """About five round values in the range."""
        if self.logarithmic:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            return [10.0**power for power in powers] or [self.low]
        if self.high == self.low:
            return [self.low]
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = min((one * power for one in (1, 2, 5, 10)), key=lambda one: abs(one - rough))
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [round((first + number) * step, 12) for number in range(count)]


def lines(
    series: Mapping[str, Points],
    x: Axis,
    y: Axis,
    title: str,
    *,
    levels: Mapping[str, float] | None = None,
    levels_name: str = "",
) -> str:
    """Figure of curves with a legend.

    Args:
        series: Points of each curve by its name.
        x: Horizontal axis.
        y: Vertical axis.
        title: Title above the figure.
        levels: Value of a dashed line across the figure for a series, in the colour of the series.
        levels_name: Meaning of the dashed lines, for the legend.
    """
    marks = [
        f'<polyline class="s{number}" points="{" ".join(f"{_x(x, a):.1f},{_y(y, b):.1f}" for a, b in points)}"/>'
        for number, points in enumerate(series.values())
    ]
    for number, name in enumerate(series):
        if levels and name in levels:
            up = _y(y, max(y.low, min(levels[name], y.high)))
            marks.append(
                f'<line class="level s{number}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up:.1f}" y2="{up:.1f}"/>'
            )
    return _figure(marks, x, y, title, list(series), dashed=levels_name if levels else "")


def bars(series: Mapping[str, Sequence[float]], groups: Sequence[str], y: Axis, title: str, x_label: str) -> str:
    """Figure of groups of bars, each group with one bar per series."""
    marks = []
    room = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    wide = 0.8 * room / max(1, len(series))
    for number, values in enumerate(series.values()):
        for group, value in enumerate(values):
            at, up = LEFT + (group + 0.1) * room + number * wide, _y(y, max(y.low, min(value, y.high)))
            name = escape(f"{groups[group]}: {value:.4g}")
            marks.append(
                f'<rect class="s{number}" x="{at:.1f}" y="{up:.1f}" width="{max(0.5, wide - 1):.1f}"'
                f' height="{max(0.0, HEIGHT - BOTTOM - up):.1f}"><title>{name}</title></rect>'
            )
    every = math.ceil(len(groups) / 10)
    names = [
        f'<text x="{LEFT + (group + 0.5) * room:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">'
        f"{escape(name)}</text>"
        for group, name in enumerate(groups)
        if group % every == 0
    ]
    return _figure([*marks, *names], Axis(x_label, 0, 0), y, title, list(series), x_ticks=False)


def scatter(series: Mapping[str, Points], x: Axis, y: Axis, title: str) -> str:
    """Figure of dots, with one colour per series."""
    marks = [
        f'<circle class="s{number}" cx="{_x(x, a):.1f}" cy="{_y(y, b):.1f}" r="2"/>'
        for number, points in enumerate(series.values())
        for a, b in points
    ]
    return _figure(marks, x, y, title, list(series))


def spreads(groups: Sequence[str], quantiles: Sequence[Sequence[float]], y: Axis, title: str, x_label: str) -> str:
    """Figure of boxes, one per group, from 5, 25, 50, 75 and 95 % quantiles."""
    room = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    marks = []
    for group, (name, values) in enumerate(zip(groups, quantiles, strict=True)):
        middle, half = LEFT + (group + 0.5) * room, min(0.3 * room, 30)
        low, quarter, median, three, high = (_y(y, value) for value in values)
        marks.append(
            f'<g class="s0"><line x1="{middle:.1f}" x2="{middle:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
            f'<rect class="box" x="{middle - half:.1f}" y="{three:.1f}" width="{2 * half:.1f}"'
            f' height="{max(0.5, quarter - three):.1f}"/>'
            f'<line class="median" x1="{middle - half:.1f}" x2="{middle + half:.1f}" y1="{median:.1f}"'
            f' y2="{median:.1f}"/></g>'
            f'<text x="{middle:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{escape(name)}</text>'
        )
    return _figure(marks, Axis(x_label, 0, 0), y, title, [], x_ticks=False)


def _x(axis: Axis, value: float) -> float:
    return LEFT + axis.at(value) * (WIDTH - LEFT - RIGHT)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - axis.at(value) * (HEIGHT - TOP - BOTTOM)


def _figure(
    marks: Sequence[str],
    x: Axis,
    y: Axis,
    title: str,
    legend: Sequence[str],
    x_ticks: bool = True,
    dashed: str = "",
) -> str:
    parts = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(y, tick):.1f}" y2="{_y(y, tick):.1f}"/>'
        f'<text x="{LEFT - 6}" y="{_y(y, tick) + 4:.1f}" text-anchor="end">{_number(tick)}</text>'
        for tick in y.ticks()
    ]
    parts += [
        f'<text x="{_x(x, tick):.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{_number(tick)}</text>'
        for tick in (x.ticks() if x_ticks else ())
    ]
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="label" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x.label)}</text>')
    up = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text class="label" transform="translate(12 {up}) rotate(-90)" text-anchor="middle">{escape(y.label)}</text>'
    )
    keys = "".join(f'<span><i class="key s{n}"></i>{escape(name)}</span>' for n, name in enumerate(legend))
    keys += f'<span><i class="key dashes"></i>{escape(dashed)}</span>' if dashed else ""
    drawn = "".join([*parts, *marks])
    legend_line = f"<p class=legend>{keys}</p>" if len(legend) > 1 or dashed else ""
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>{legend_line}"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{drawn}</svg></figure>'
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"
