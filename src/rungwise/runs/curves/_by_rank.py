"""Recall by K, and degree by rank, from the values per query that results keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rungwise.evaluation import Result
from rungwise.evaluation.analysis import random_recall
from rungwise.evaluation.statistics import WAYS, Interval, interval_of
from rungwise.metrics import DIRECTIONS, Direction, MeanDegree, parse
from rungwise.runs.curves._measured import ComparableResults, title_of
from rungwise.runs.curves._panels import LEVEL, BandWords, Panel, PlotCurve, PlotPart, band_notes, spread

_RANKS = ("MedR", "MeanR", "MRR")
"""Measures whose value of a query tells the rank of its best right candidate."""
_EVERY = 60
"""Ranks up to which each one is drawn; beyond, they are spaced evenly on a logarithmic axis."""
_POINTS = 120
"""Number of ranks beyond these."""
_WRITTEN_FOR = "captions written for the image"

PerFold = Callable[[Result, slice], NDArray[np.float64]]


def recall_part(found: ComparableResults, draws: int = 1000) -> tuple[PlotPart | None, list[str]]:
    """Panels of recall by K, one a direction, and a line for each system that is left out.

    The share of queries whose best right candidate stands in the first K follows from the rank of that candidate, which
    a result keeps for each query if MedR, MeanR or MRR was measured.

    Args:
        found: Results of one question.
        draws: Number of bootstrap draws of pictures, where a system has one seed.
    """
    left_out = list(found.left_out)
    panels, notes = [], list(found.notes)
    for way in DIRECTIONS:
        curves = []
        sizes = found.of[0][1][0].gallery[way]
        ks = _spaced(min(sizes))
        for system, results in found.of:
            usable = [one for one in results if best_ranks(one, way) is not None]
            if not usable:
                left_out.append(_without(system.folder, system.name, found, "recall", "MedR"))
                continue
            if len(usable) < len(results):
                left_out.append(_some("recall", system.name, len(results) - len(usable), len(results), "MedR"))
            curves.append(
                replace(
                    _over_seeds_or_pictures(usable, way, partial(_hits, way=way, ks=ks), draws),
                    name=system.name,
                    x=tuple(ks.tolist()),
                )
            )
        if not curves:
            continue
        first = found.of[0][1][0]
        chance = chance_of_recall(first, way, ks)
        if chance is not None:
            curves.append(PlotCurve("chance", tuple(ks.tolist()), tuple(chance.tolist()), role="chance"))
        panels.append(
            Panel(
                WAYS[way],
                _x_label("K, number of first candidates", sizes, way),
                "recall R@K (%)",
                tuple(curves),
                log_x=True,
            )
        )
    if not panels:
        return None, left_out
    first = found.of[0][1][0]
    if found.question.right != _WRITTEN_FOR:
        notes.append(f"right is: {found.question.right}; chance is not drawn, since how many are right is not kept")
    folds = len(first.gallery["i2t"])
    notes += [f"mean of {folds} folds"] * (folds > 1)
    title = title_of("Recall by K", first)
    return PlotPart("recall", title, tuple(panels), (*band_notes(panels), *notes)), list(dict.fromkeys(left_out))


def degree_part(found: ComparableResults, draws: int = 1000) -> tuple[PlotPart | None, list[str]]:
    """Panels of the mean degree by rank, one a direction, with the best possible order and chance; and lines left out.

    Args:
        found: Results of one question.
        draws: Number of bootstrap draws of pictures, where a system has one seed.
    """
    left_out = list(found.left_out)
    panels = []
    for way in DIRECTIONS:
        curves: list[PlotCurve] = []
        longest: tuple[int, Result] | None = None
        for system, results in found.of:
            depths = [_depth(one, way) for one in results]
            usable = [one for one, depth in zip(results, depths, strict=True) if depth]
            if not usable:
                left_out.append(_without(system.folder, system.name, found, "degrees", "MeanDegree@50"))
                continue
            if len(usable) < len(results):
                left_out.append(_some("degrees", system.name, len(results) - len(usable), len(results), "MeanDegree"))
            depth = min(filter(None, depths))
            own = (_depth(usable[0], way), usable[0])
            longest = max(longest or own, own, key=lambda one: one[0])

            def degrees(one: Result, queries: slice, depth: int = depth, way: Direction = way) -> NDArray[np.float64]:
                own = _depth(one, way)
                return MeanDegree(own).curves(one.per_query(_degree_name(way, own))[queries]).retrieved[:, :depth]

            curve = _over_seeds_or_pictures(usable, way, degrees, draws, highest=np.inf)
            curves.append(replace(curve, name=system.name, x=tuple(float(rank) for rank in range(1, depth + 1))))
        if longest is None:
            continue
        depth, result = longest
        x = tuple(float(rank) for rank in range(1, depth + 1))
        parts = MeanDegree(depth).curves(result.per_query(_degree_name(way, depth)))
        ideal = _mean_of_folds([_means(parts.ideal[queries]) for queries in _folds(result, way)])
        chance = _mean_of_folds([_means(parts.chance[queries, None]) for queries in _folds(result, way)])
        curves += [
            PlotCurve("best possible order", x, tuple(ideal.tolist()), role="ideal"),
            PlotCurve("chance", x, tuple(np.repeat(chance, depth).tolist()), role="chance"),
        ]
        label = _x_label("rank", result.gallery[way], way)
        panels.append(Panel(WAYS[way], label, "mean degree of relevance", tuple(curves), whole_x=True))
    if not panels:
        return None, list(dict.fromkeys(left_out))
    first = found.of[0][1][0]
    notes = [*band_notes(panels), *found.notes, f"degrees: {first.degrees()}"]
    notes.append("best possible order: the largest degrees first; chance: the mean degree of all candidates")
    title = title_of("Degree of relevance by rank", first)
    return PlotPart("degrees", title, tuple(panels), tuple(notes)), list(dict.fromkeys(left_out))


def best_ranks(result: Result, way: Direction) -> NDArray[np.float64] | None:
    """(queries,) rank of the best right candidate, NaN where there is none; None where the result does not keep it.

    >>> from rungwise.evaluation import evaluate
    >>> best_ranks(evaluate(similarity=np.eye(2)[::-1], image_of_caption=[0, 1], measures=["MRR"]), "i2t")
    array([2., 2.])
    """
    for name in _RANKS:
        if f"{way}/{name}" in result.numbers and result.has_queries:
            values = result.per_query(f"{way}/{name}")
            return np.rint(100.0 / values) if name == "MRR" else values
    return None


def chance_of_recall(result: Result, way: Direction, ks: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """(K,) expected R@K in percent of an order at random: 100 x (1 - C(n - r, K) / C(n, K)), mean over queries.

    n is the size of the gallery and r the number of right candidates of a query. Queries without one are left out.

    Returns:
        None where the numbers of right candidates are not known: other answers count than those of the annotation.

    >>> from rungwise.evaluation import evaluate
    >>> result = evaluate(similarity=np.eye(4), image_of_caption=[0, 1, 2, 3])
    >>> chance_of_recall(result, "t2i", np.array([1, 2, 4]))
    array([ 25.,  50., 100.])
    """
    if result.right != _WRITTEN_FOR or not result.has_queries:
        return None
    folds = []
    queries = {one: list(_folds(result, one)) for one in DIRECTIONS}
    for fold, size in enumerate(result.gallery[way]):
        if way == "t2i":
            counts = np.ones(1, dtype=np.int64)
        else:
            owners = result.image_of_query("t2i")[queries["t2i"][fold]]
            own = result.image_of_query("i2t")[queries["i2t"][fold]]
            of_image = dict(zip(*np.unique(owners, return_counts=True), strict=True))
            counts = np.array([of_image.get(image, 0) for image in own], dtype=np.int64)
        folds.append(100.0 * random_recall(size, counts[counts > 0], ks))
    return _mean_of_folds(folds)


def _hits(result: Result, queries: slice, way: Direction, ks: NDArray[np.int64]) -> NDArray[np.float64]:
    """(queries, K) 100 where the best right candidate is in the first K, else 0; NaN without a right candidate."""
    ranks = best_ranks(result, way)
    assert ranks is not None
    own = ranks[queries, None]
    return np.where(np.isnan(own), np.nan, 100.0 * (own <= ks))


def _over_seeds_or_pictures(
    results: Sequence[Result], way: Direction, values: PerFold, draws: int, highest: float = 100.0
) -> PlotCurve:
    """Mean over queries, folds and seeds, with a band over seeds, or over pictures where there is one seed."""
    rows = [_mean_of_folds([_means(values(one, queries)) for queries in _folds(one, way)]) for one in results]
    curve = spread([row.tolist() for row in rows], 0.0, highest)
    if len(results) > 1 or not draws:
        return curve

    generator = np.random.default_rng(0)
    folds = [
        _drawn(generator, values(results[0], queries), results[0].image_of_query(way)[queries], draws)
        for queries in _folds(results[0], way)
    ]
    bounds: list[Interval] = [interval_of(own, LEVEL) for own in _mean_of_folds(folds).T]
    low, high = (tuple(float(one) for one in side) for side in zip(*bounds, strict=True))
    return replace(curve, low=low, high=high, band=BandWords(draws=draws))


def _drawn(
    generator: np.random.Generator, values: NDArray[np.float64], owners: NDArray[np.int64], draws: int
) -> NDArray[np.float64]:
    """(draws, columns) means over queries when pictures are drawn with replacement, with all their queries."""
    _, own = np.unique(owners, return_inverse=True)
    pictures = own.max() + 1
    known = ~np.isnan(values)
    sums, counts = (np.zeros((pictures, values.shape[1])) for _ in range(2))
    np.add.at(sums, own, np.nan_to_num(values))
    np.add.at(counts, own, known)
    times = generator.multinomial(pictures, np.full(pictures, 1.0 / pictures), draws).astype(np.float64)
    total, weight = times @ sums, times @ counts
    return np.asarray(np.divide(total, weight, out=np.full(total.shape, np.nan), where=weight > 0))


def _means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(columns,) means over queries that have a value; NaN where none has."""
    counts = (~np.isnan(values)).sum(axis=0)
    nothing = np.full(values.shape[1], np.nan)
    return np.asarray(np.divide(np.nansum(values, axis=0), counts, out=nothing, where=counts > 0))


def _mean_of_folds(folds: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.asarray(np.mean(folds, axis=0))


def _folds(result: Result, way: Direction) -> Iterator[slice]:
    """Queries of each fold."""
    start = 0
    for size in result.gallery["t2i" if way == "i2t" else "i2t"]:
        yield slice(start, start + size)
        start += size


def _spaced(gallery: int) -> NDArray[np.int64]:
    """Ranks to draw: all of the first ones, then evenly on a logarithmic axis to the last one."""
    beyond = np.geomspace(_EVERY, max(gallery, _EVERY), _POINTS)
    ks = np.unique(np.concatenate([np.arange(1, _EVERY), np.rint(beyond).astype(np.int64)]))
    return np.asarray(ks[ks <= gallery])


def _depth(result: Result, way: Direction) -> int:
    """The largest K of MeanDegree@K in a result; 0 without one, or without values per query."""
    names = [name.partition("/")[2] for name in result.numbers if name.startswith(f"{way}/MeanDegree@")]
    found = [one.k for one in map(parse, names) if isinstance(one, MeanDegree)]
    return max(found, default=0) if result.has_queries else 0


def _degree_name(way: Direction, depth: int) -> str:
    return f"{way}/{MeanDegree(depth)}"


def _x_label(what: str, sizes: Sequence[int], way: Direction) -> str:
    candidates = "captions" if way == "i2t" else "pictures"
    return f"{what}, of {sizes[0]:,} {candidates}"


def _some(kind: str, name: str, lacking: int, of: int, measure: str) -> str:
    return f"{kind}: {name}: {lacking} of {of} seeds keep no {measure} of single queries, and are not in the mean"


def _without(folder: str, name: str, found: ComparableResults, kind: str, measure: str) -> str:
    more = " --relevance DEGREES" if kind == "degrees" else ""
    split = f" --split {found.question.split}" if found.question.split not in ("", "test") else ""
    return (
        f"{kind}: {name}: its result keeps no {measure.partition('@')[0]} of single queries; rungwise evaluate {folder}"
        f" DATA --protocol {found.question.protocol}{split}{more} --measures R@1 R@5 R@10 {measure}"
    )
