"""Figures of where relevance ends: how well single queries are cut, and which expected degrees are too high."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rungwise.evaluation._result import Result
from rungwise.evaluation.report import _plots as plots
from rungwise.evaluation.statistics import WAYS
from rungwise.metrics import BINS, ECE, CutF1, parse

_EDGES = (0.0, 1e-9, 20.0, 40.0, 60.0, 80.0, 100.0 - 1e-9, np.inf)
_NAMES = ("0", "to 20", "to 40", "to 60", "to 80", "to 100", "100")


def plots_of_ends(result: Result) -> list[str]:
    """One figure for each measure of where relevance ends that has one; empty where none was measured."""
    return [*_cuts(result), *_bins(result)]


def _cuts(result: Result) -> Iterator[str]:
    for name in _measured(result, CutF1):
        shares: dict[str, list[float]] = {}
        for way, title in WAYS.items():
            values = result.per_query(f"{way}/{name}")
            counts, _ = np.histogram(values[~np.isnan(values)], bins=_EDGES)
            shares[title] = (100 * counts / max(1, counts.sum())).tolist()
        y = plots.Axis("percent of queries", 0, max(max(one) for one in shares.values()) or 1)
        yield plots.bars(shares, _NAMES, y, f"{name} of queries", name)


def _bins(result: Result) -> Iterator[str]:
    for name in _measured(result, ECE):
        middles = ((np.arange(BINS) + 0.5) / BINS).tolist()
        curves = {}
        for way, title in WAYS.items():
            rows = result.per_query(f"{way}/{name}")
            known = rows[~np.isnan(rows[:, 0])]
            if len(known):
                curves[title] = list(zip(middles, known.mean(axis=0).tolist(), strict=True))
        if not curves:
            continue
        reach = max(abs(value) for points in curves.values() for _, value in points) or 1.0
        x = plots.Axis("expected degree, as a share of the scale", 0, 1)
        y = plots.Axis("weighted by pairs", -reach, reach)
        yield plots.lines(curves, x, y, f"Expected less true degree: their sizes add up to {name}")


def _measured(result: Result, family: type[CutF1] | type[ECE]) -> list[str]:
    """Measures of a family that have values for every query in both directions, in the result's order."""
    names = [name.partition("/")[2] for name in result.numbers if name.startswith("t2i/")]
    known = set(result.numbers) if result.has_queries else set()
    return [name for name in names if f"i2t/{name}" in known and isinstance(parse(name), family)]
