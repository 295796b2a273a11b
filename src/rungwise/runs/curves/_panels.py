"""What a plot is made of: curves with their bands, in panels. Nothing here draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rungwise.core.output import short_repr

Role = Literal["system", "ideal", "chance"]
"""What a curve is of: a system, the best order that there could be, or an order at random."""

LEVEL = 0.95
"""Level of the intervals that bands show."""
WIDE = 20
"""Largest ratio of positive numbers that still stand on a linear axis."""


class BandWords(NamedTuple):
    """What the band of a curve is, in words.

    Attributes:
        seeds: Number of runs whose mean the curve is; 0 where the band is not over seeds.
        draws: Number of draws of pictures; 0 where the band is not over pictures.
    """

    seeds: int = 0
    draws: int = 0

    def __str__(self) -> str:
        if self.seeds:
            return f"95 % interval of the mean over {self.seeds} seeds, by Student's t"
        if self.draws:
            return f"95 % interval over pictures, by {self.draws:,} bootstrap draws"
        return ""


_NO_BAND = BandWords()


@dataclass(frozen=True)
class PlotCurve:
    """One line of a plot.

    Attributes:
        name: Name in the legend.
        x: Numbers, or words on an axis of categories.
        y: Numbers, as many as in x; NaN where there is none.
        low: Lower bounds of the band; empty without a band.
        high: Upper bounds of the band.
        band: What the band is.
        role: What the line is of.
        kept: Values of x at which the model was kept, one for each seed.
        ends: Values of x at which something ended, with its name: the warm-up, a stage.
    """

    name: str
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    band: BandWords = _NO_BAND
    role: Role = "system"
    kept: tuple[float, ...] = ()
    ends: tuple[tuple[float, str], ...] = ()

    __repr__ = short_repr

    @property
    def has_values(self) -> bool:
        """Whether any point can be drawn."""
        return any(math.isfinite(one) for one in self.y)


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: Text above the axes.
        x_label: Text below the axes.
        y_label: Text beside the axes.
        curves: What is drawn.
        log_x: Whether x is on a logarithmic axis.
        log_y: Whether y is on a logarithmic axis.
        whole_x: Whether x counts something, so that ticks stand at whole numbers.
        categories: Words of the x axis, in their order; empty for numbers.
    """

    title: str
    x_label: str
    y_label: str
    curves: tuple[PlotCurve, ...]
    log_x: bool = False
    log_y: bool = False
    whole_x: bool = False
    categories: tuple[str, ...] = ()

    __repr__ = short_repr


@dataclass(frozen=True)
class PlotPart:
    """Panels of one kind, with what they have in common.

    Attributes:
        kind: Kind of the curves.
        title: Text above the panels, one or two lines.
        panels: The panels.
        notes: Lines below them, that say what bands and other lines are.
    """

    kind: str
    title: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()

    __repr__ = short_repr


def spread(rows: Sequence[Sequence[float]], lowest: float = -math.inf, highest: float = math.inf) -> PlotCurve:
    """Mean of some rows at each place, with the band over seeds where there are several; without name and x.

    A place where a row has NaN has the mean of the other rows.

    Args:
        rows: (seeds, places) numbers.
        lowest: Smallest possible number, below which no band goes.
        highest: Largest possible number.

    >>> spread([[1.0, 2.0], [3.0, 2.0]]).y
    (2.0, 2.0)
    """
    values = np.array(rows, dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    counts = (~np.isnan(values)).sum(axis=0)
    mean = np.divide(np.nansum(values, axis=0), counts, out=np.full(values.shape[1], np.nan), where=counts > 0)
    bare = PlotCurve("", (), tuple(mean.tolist()))
    if len(values) < 2:
        return bare
    from scipy import stats  # takes half a second

    squares = np.nansum((values - mean) ** 2, axis=0)
    several = counts > 1
    freedom = np.where(several, counts - 1, 1)
    half = stats.t.ppf(0.5 + LEVEL / 2, freedom) * np.sqrt(squares / freedom / np.maximum(counts, 1))
    # Seeds that agree, such as two that found as many, say nothing of how far others lie apart.
    differ = np.sqrt(squares / freedom) > 1e-9 * np.maximum(1, np.abs(mean))
    half = np.where(several & differ, half, np.nan)
    return replace(
        bare,
        low=tuple(np.clip(mean - half, lowest, highest).tolist()),
        high=tuple(np.clip(mean + half, lowest, highest).tolist()),
        band=BandWords(seeds=len(values)),
    )


def band_notes(panels: Sequence[Panel]) -> list[str]:
    """A line for each sort of band, that says of which curves it is.

    >>> one, other = PlotCurve("a", (1,), (2.0,), (1.0,), (3.0,), BandWords(3)), PlotCurve("b", (1,), (2.0,))
    >>> band_notes([Panel("", "", "", (one, other))])
    ["band of a: 95 % interval of the mean over 3 seeds, by Student's t", 'b: one run, without a band']
    """
    of: dict[str, list[str]] = {}
    for panel in panels:
        for curve in panel.curves:
            if curve.role == "system" and curve.has_values:
                names = of.setdefault(str(curve.band) if curve.low else "", [])
                if curve.name not in names:
                    names.append(curve.name)
    if len(of) == 1:
        return [f"bands: {words}" if words else "each line is one run, without a band" for words in of]
    return [
        f"band of {_listed(names)}: {words}" if words else f"{_listed(names)}: one run, without a band"
        for words, names in of.items()
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"


def is_wide(numbers: Sequence[float] | NDArray[np.float64]) -> bool:
    """Whether numbers are positive and span so much that a logarithmic axis shows them better.

    >>> is_wide([1, 20]), is_wide([1, 21]), is_wide([0, 21])
    (False, True, False)
    """
    known = [one for one in numbers if math.isfinite(one)]
    return bool(known) and min(known) > 0 and max(known) > WIDE * min(known)
