"""Figures of where relevance ends: how well single queries are cut, and which expected degrees are too high."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rungwise.evaluation.analysis import mean_curve
from rungwise.evaluation.report import _plots as plots
from rungwise.evaluation.result import Result
from rungwise.evaluation.statistics import WAYS
from rungwise.metrics import BINS, ECE, CutF1, parse

_EDGES = (0.0, 1e-9, 20.0, 40.0, 60.0, 80.0, 100.0 - 1e-9, np.inf)
_NAMES = ("0", "to 20", "to 40", "to 60", "to 80", "to 100", "100")


def plots_of_ends(result: Result) -> list[plots.Figure]:
    """One figure for each measure of where relevance ends that has one; empty where none was measured."""
    return [*_cuts(result), *_bins(result)]


def _cuts(result: Result) -> Iterator[plots.Figure]:
    for name in _measured(result, CutF1):
        shares: dict[str, list[float]] = {}
        for way, title in WAYS.items():
            values = result.per_query(f"{way}/{name}")
            counts, _ = np.histogram(values[~np.isnan(values)], bins=_EDGES)
            shares[title] = (100 * counts / max(1, counts.sum())).tolist()
        y = plots.Axis("percent of queries", 0, max(max(one) for one in shares.values()) or 1)
        note = f"How many queries are cut how well: percentage of queries by their own {name}, in percent; 100 is best."
        yield plots.bars(shares, _NAMES, y, f"{name} of queries", name, note)


def _bins(result: Result) -> Iterator[plots.Figure]:
    for name in _measured(result, ECE):
        middles = ((np.arange(BINS) + 0.5) / BINS).tolist()
        curves = {}
        for way, title in WAYS.items():
            rows = result.per_query(f"{way}/{name}")
            known = rows[~np.isnan(rows[:, 0])]
            if len(known):
                curves[title] = mean_curve(middles, rows, result.image_of_query(way), chance=0.0)
        if not curves:
            continue
        reach = max(float(np.abs([curve.low, curve.high]).max()) for curve in curves.values()) or 1.0
        x = plots.Axis("expected degree, as a share of the scale", 0, 1)
        y = plots.Axis("weighted by pairs", -reach, reach)
        title = f"Expected less true degree: their sizes add up to {name}"
        note = (
            "In each of ten ranges of the expected degree: the mean difference from the true degree, times the share of"
            " pairs in the range. Above 0 degrees are expected too high, below 0 too low. Bands: 95 % bootstrap"
            " intervals over images, at each point by itself."
        )
        yield plots.lines(curves, x, y, title, note=note, chance="no error")


def _measured(result: Result, family: type[CutF1] | type[ECE]) -> list[str]:
    """Measures of a family that have values for every query in both directions, in the result's order."""
    names = [name.partition("/")[2] for name in result.numbers if name.startswith("t2i/")]
    known = set(result.numbers) if result.has_queries else set()
    return [name for name in names if f"i2t/{name}" in known and isinstance(parse(name), family)]
