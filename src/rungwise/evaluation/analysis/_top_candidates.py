"""The first candidates of every query of a gallery, their relevance, and how often each candidate is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.compute import top_columns
from rungwise.core.output import short_repr
from rungwise.evaluation.analysis._curves import steps_of
from rungwise.evaluation.inputs import RankOnly, checked_degrees
from rungwise.evaluation.judgements import RightAnswers
from rungwise.metrics import DIRECTIONS, Direction, MatrixSource, Positives, Rankings, SimilaritySource, positives_of

_BLOCK_VALUES = 1 << 22
_DEEPEST = 1000
"""Largest rank at which degrees are read: as deep as the coherent score goes in papers."""
_RANKS = 30
"""Number of ranks, evenly on a logarithmic scale."""


@dataclass(frozen=True)
class DegreesByRank:
    """Degrees of the candidates at some ranks, and what they would be in other orders.

    Attributes:
        ranks: (ranks,) rising ranks, from 1 to 1,000 at most.
        found: (queries, ranks) degree of the candidate at each rank.
        ideal: (queries, ranks) degree at each rank where candidates are ordered by their degrees.
        mean: (queries,) mean degree of all candidates, which a random order has at every rank.
    """

    ranks: NDArray[np.int64]
    found: NDArray[np.float64]
    ideal: NDArray[np.float64]
    mean: NDArray[np.float64]

    __repr__ = short_repr


@dataclass(frozen=True)
class TopCandidates:
    """The first candidates of every query of one direction.

    Attributes:
        direction: Direction of the queries.
        candidates: (queries, k) positions of candidates, best first; -1 behind the end of a ranked list.
        scores: (queries, k) similarities; NaN where rankings came as lists.
        annotated: (queries, k) whether the annotation calls the candidate right.
        degrees: (queries, k) degrees of relevance, NaN behind the end of a list; None without relevance.
        own_degrees: (queries,) the lowest degree among a query's annotated candidates, NaN where it has none.
        best_rank: (queries,) rank of the best annotated candidate, NaN where there is none, inf where none is listed.
        margin: (queries,) similarity of the best annotated candidate less that of the best other one; NaN where
            rankings came as lists.
        occurrences: (candidates,) number of top-ten lists that each candidate stands in.
        lengths: (queries,) number of candidates with a known place: all of them, unless rankings came as lists.
        positives: (queries,) number of right candidates.
        by_rank: Degrees by rank; None without relevance, where pairs have no degree, and where lists are too short.
    """

    direction: Direction
    candidates: NDArray[np.int64]
    scores: NDArray[np.float64]
    annotated: NDArray[np.bool_]
    degrees: NDArray[np.float64] | None
    own_degrees: NDArray[np.float64] | None
    best_rank: NDArray[np.float64]
    margin: NDArray[np.float64]
    occurrences: NDArray[np.int64]
    lengths: NDArray[np.int64]
    positives: NDArray[np.int64]
    by_rank: DegreesByRank | None = None

    __repr__ = short_repr

    @property
    def depth(self) -> int:
        """Rank down to which the rankings of all queries with a right candidate are known."""
        return int(self.lengths[~np.isnan(self.best_rank)].min(initial=len(self.occurrences)))

    @property
    def hubness(self) -> float:
        """Skewness of the occurrences: near 0 where all candidates are found equally often, large where hubs dominate.

        The k-occurrence skewness of Radovanovic et al. 2010, k = 10.
        """
        counts = self.occurrences.astype(np.float64)
        spread = counts.std()
        return float(((counts - counts.mean()) ** 3).mean() / spread**3) if spread else 0.0


def top_candidates_of(
    similarity: SimilaritySource | ArrayLike,
    image_of_caption: ArrayLike,
    relevance: Any = None,
    positives: RightAnswers | None = None,
    k: int = 30,
) -> dict[Direction, TopCandidates]:
    """The first candidates of every query, in both directions or in those that were ranked.

    Args:
        similarity: (images, captions) matrix, or a source of it.
        image_of_caption: (captions,) position of each caption's image.
        relevance: (images, captions) degrees, or an object with ``block``; NaN where a pair has no degree.
        positives: Right candidates per direction, where they differ from what ``image_of_caption`` says.
        k: Number of candidates to keep for each query.

    >>> lists = top_candidates_of([[0.9, 0.8, 0.1], [0.3, 0.2, 0.4]], [0, 1, 1], k=2)["i2t"]
    >>> lists.candidates.tolist(), lists.best_rank.tolist(), lists.margin.round(2).tolist()
    ([[0, 1], [2, 0]], [1.0, 1.0], [0.1, 0.1])
    """
    source: Any = similarity if hasattr(similarity, "rows") else MatrixSource(np.asarray(similarity))
    owners = np.asarray(image_of_caption, dtype=np.int64)
    images, captions = source.shape
    right: Mapping[Direction, Positives] = positives or positives_of(owners, images)
    degrees = checked_degrees(relevance, source.shape, gaps=True)
    found: dict[Direction, TopCandidates] = {}
    for way in source.directions if isinstance(source, RankOnly) else DIRECTIONS:
        blocks = source.rows if way == "i2t" else source.columns
        gallery, queries = (captions, images) if way == "i2t" else (images, captions)
        lengths = source.lengths(way) if isinstance(source, RankOnly) else np.full(queries, gallery)
        ranks = steps_of(min(gallery, _DEEPEST, int(lengths.min(initial=gallery))), _RANKS)
        parts: list[tuple[NDArray[np.int64], dict[str, NDArray[Any]]]] = []
        for which, scores in blocks(max(1, _BLOCK_VALUES // max(1, gallery))):
            block = None
            if degrees is not None:
                everything = np.arange(gallery)
                asked = (which, everything) if way == "i2t" else (everything, which)
                block = np.asarray(degrees.block(*asked), dtype=np.float64)
                block = block if way == "i2t" else np.ascontiguousarray(block.T)
            parts.append((which, _in_block(scores, right[way].select(which), block, min(k, gallery), way, ranks)))
        order = np.argsort(np.concatenate([which for which, _ in parts]), kind="stable")
        joined = {name: np.concatenate([part[name] for _, part in parts])[order] for name in parts[0][1]}
        if isinstance(source, RankOnly):
            _leave_out_unlisted(joined, lengths)
        tens = joined.pop("tens")
        by_rank = DegreesByRank(ranks, *(joined.pop(name) for name in _BY_RANK)) if degrees is not None else None
        if by_rank is not None and (np.isnan(by_rank.mean).any() or not lengths.all()):
            by_rank = None
        found[way] = TopCandidates(
            direction=way,
            occurrences=np.bincount(tens[tens >= 0], minlength=gallery),
            lengths=lengths,
            positives=right[way].counts,
            by_rank=by_rank,
            degrees=joined.pop("degrees", None),
            own_degrees=joined.pop("own_degrees", None),
            **joined,
        )
    return found


_BY_RANK = ("found_at", "ideal_at", "mean_degree")


def _in_block(
    scores: NDArray[Any],
    own: Positives,
    degrees: NDArray[np.float64] | None,
    k: int,
    way: Direction,
    ranks: NDArray[np.int64],
) -> dict[str, NDArray[Any]]:
    rankings = Rankings(own, scores, direction=way)
    mask = rankings.positive_mask
    deepest = 10 if degrees is None else int(ranks[-1])
    listed = top_columns(scores, min(max(k, 10, deepest), scores.shape[1]))
    top = listed[:, :k]
    best = np.where(mask, scores, -np.inf).max(axis=1)
    other = np.where(mask, -np.inf, scores).max(axis=1)
    with np.errstate(invalid="ignore"):
        margin = np.where(np.isfinite(best) & np.isfinite(other), best - other, np.nan)
    found: dict[str, NDArray[Any]] = {
        "candidates": top,
        "scores": np.take_along_axis(scores, top, axis=1).astype(np.float64),
        "annotated": np.take_along_axis(mask, top, axis=1),
        "best_rank": rankings.best_rank,
        "margin": margin,
        "tens": listed[:, :10],
    }
    if degrees is not None:
        found["degrees"] = np.take_along_axis(degrees, top, axis=1)
        lowest = np.where(mask & ~np.isnan(degrees), degrees, np.inf).min(axis=1)
        found["own_degrees"] = np.where(np.isfinite(lowest), lowest, np.nan)
        found["found_at"] = np.take_along_axis(degrees, listed[:, ranks - 1], axis=1)
        best = np.take_along_axis(degrees, top_columns(degrees, deepest), axis=1)
        found["ideal_at"], found["mean_degree"] = best[:, ranks - 1], degrees.mean(axis=1)
    return found


def _leave_out_unlisted(found: dict[str, NDArray[Any]], lengths: NDArray[np.int64]) -> None:
    """Remove what a ranked list does not say: similarities, and the order of candidates that were not listed."""
    for name, nothing in (("candidates", -1), ("annotated", False), ("degrees", np.nan), ("tens", -1)):
        if name in found:
            found[name][np.arange(found[name].shape[1]) >= lengths[:, None]] = nothing
    found["best_rank"][found["best_rank"] > lengths] = np.inf
    found["scores"][:] = np.nan
    found["margin"][:] = np.nan
