"""What a report shows besides the numbers, from one gallery: curves, rungs, hubs, the gap between the modalities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.core.text import evenly_spread
from rungwise.data import ImageCaptions
from rungwise.evaluation import EvaluationSettings
from rungwise.evaluation._evaluate import evaluate
from rungwise.evaluation._protocols import Fold, Protocol, protocol_named
from rungwise.evaluation.analysis._curves import MeanCurve, mean_curve
from rungwise.evaluation.analysis._false_negatives import FalseNegative, find_false_negatives
from rungwise.evaluation.analysis._top_candidates import TopCandidates, top_candidates_of
from rungwise.evaluation.inputs import RankedLists, checked_degrees, similarity_source
from rungwise.evaluation.judgements import HumanPositives, RightAnswers
from rungwise.metrics import CheckedDegrees, Direction, EmbeddingSource, SimilaritySource, positives_of

LIST_LENGTH = 30
"""Length of the candidate lists that are kept: the length shown in the ladder paper's figure."""

_CS_STEPS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_SAMPLE = 300
_SHARES = (0.001, 0.01, 0.1)
_SHOWN = 400
_BLOCK_VALUES = 1 << 22


@dataclass(frozen=True)
class RungSlice:
    """Statistics of the pairs on one rung, in a sample of image queries.

    Attributes:
        low: Lowest degree on the rung; -inf for the last rung.
        pairs: Number of sampled pairs on the rung.
        quantiles: Quantiles of the similarity of these pairs at 5, 25, 50, 75 and 95 %.
        percentile: Mean place of the rung's captions in an image's ranking, 0 first and 100 last.
        found: Percentage of the rung's pairs whose caption stands in the first ten.
    """

    low: float
    pairs: int
    quantiles: tuple[float, ...]
    percentile: float
    found: float


@dataclass(frozen=True)
class Gap:
    """The gap between the modalities, measured on normalised vectors.

    Attributes:
        distance: Distance between the mean image vector and the mean caption vector (Liang et al. 2022).
        images: (n, 2) sampled images, projected on the two directions in which all vectors vary most.
        captions: (n, 2) sampled captions, projected likewise.
    """

    distance: float
    images: NDArray[np.float64]
    captions: NDArray[np.float64]


@dataclass(frozen=True)
class Diagnostics:
    """Everything that a report shows besides the numbers, for the protocol's first gallery.

    Attributes:
        data: Images and captions of the gallery.
        folds: All galleries of the protocol, the one described here first.
        lists: First candidates of every query, per direction.
        thresholds: Falling degrees that separate the rungs; empty without relevance.
        rungs: One entry more than there are thresholds; empty without relevance, or where rankings have no
            similarities.
        sampled: Number of image queries whose pairs the rungs are made of.
        coherence: Per direction, CS@K by K; None without relevance.
        gap: None unless both sides are embeddings of the same width.
    """

    data: ImageCaptions
    folds: Sequence[Fold]
    lists: Mapping[Direction, TopCandidates]
    thresholds: tuple[float, ...] = ()
    rungs: tuple[RungSlice, ...] = ()
    sampled: int = 0
    coherence: Mapping[Direction, MeanCurve] | None = None
    gap: Gap | None = None
    _lists_of_fold: Callable[[Fold], Mapping[Direction, TopCandidates]] | None = field(default=None, repr=False)

    __repr__ = short_repr

    def lists_of(self, gallery: int) -> Mapping[Direction, TopCandidates]:
        """First candidates of every query of a gallery, by its number; only those of the first are read beforehand."""
        if gallery == 0 or self._lists_of_fold is None:
            return self.lists
        return self._lists_of_fold(self.folds[gallery])


def diagnose(
    scores: SimilaritySource | Mapping[str, Any],
    data: ImageCaptions,
    *,
    relevance: Any = None,
    positives: RightAnswers | None = None,
    human_positives: HumanPositives | None = None,
    protocol: str | Protocol = "full",
    thresholds: Sequence[float] = (),
) -> Diagnostics:
    """Describe the rankings that ``_evaluate`` measures: lists, rungs, coherence, modality gap.

    Args:
        scores: A source from :func:`~rungwise.evaluation.inputs.similarity_source`, or a mapping with
            ``similarity``, or with ``image_embeddings`` and ``text_embeddings``, as ``evaluate`` takes them.
        data: All images and captions. Captions may be without texts; only statistics of the texts are then left out.
        relevance: Degrees as ``evaluate`` takes them. Where some are NaN, the curves of CS are left out.
        positives: Right candidates per direction, as ``evaluate`` takes them.
        human_positives: Human positives, as ``evaluate`` takes them.
        protocol: A protocol or its name; the first of its galleries is described.
        thresholds: Falling degrees that separate the rungs. Default: 0.1, 1 and 10 % of the pairs lie above them.

    Raises:
        UserError: If ``evaluate`` would refuse the same input, or thresholds do not fall.

    >>> data = ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1]))
    >>> found = diagnose({"similarity": np.eye(2)}, data, relevance=np.eye(2), thresholds=[0.5])
    >>> [(rung.pairs, rung.percentile) for rung in found.rungs], found.lists["t2i"].hubness
    ([(2, 0.0), (2, 100.0)], 0.0)
    """
    _refuse_unless_falling(thresholds)
    folds = protocol_named(protocol).folds(data.image_of_caption, len(data))
    if isinstance(scores, Mapping):
        scores = similarity_source(**scores, image_of_caption=data.image_of_caption, images=len(data))
    source: SimilaritySource = scores

    def lists_of(fold: Fold) -> Mapping[Direction, TopCandidates]:
        part, gallery, degrees = _gallery(source, data, relevance, fold)
        owners, right = gallery.image_of_caption, positives
        if human_positives is not None:
            right = human_positives.beside(positives or positives_of(owners, len(gallery)), fold)
        return top_candidates_of(part, owners, degrees, right, LIST_LENGTH)

    part, gallery, degrees = _gallery(source, data, relevance, folds[0])
    found = Diagnostics(gallery, folds, lists_of(folds[0]), gap=_gap(source), _lists_of_fold=lists_of)
    if degrees is None:
        return found
    cuts, rungs = _rungs(part, degrees, thresholds)
    return replace(
        found,
        thresholds=cuts,
        rungs=rungs,
        sampled=min(len(gallery), _SAMPLE) if rungs else 0,
        coherence=None if isinstance(part, RankedLists) else _coherence(part, gallery, degrees, positives),
    )


def false_negatives_by_gallery(
    found: Diagnostics, *, right_from: float | None = None, galleries: int | None = None
) -> list[list[FalseNegative]]:
    """False negatives of each gallery, with positions counted within that gallery.

    Args:
        found: Diagnostics of the rankings.
        right_from: The degree from which a candidate is right; None decides per query, as
            :func:`~rungwise.evaluation.analysis.find_false_negatives` says.
        galleries: Number of galleries to look at, from the first; None takes all.

    >>> data = ImageCaptions(("a", "b"), ("pup", "dog"), np.arange(2))
    >>> found = diagnose({"similarity": np.eye(2)}, data, relevance=np.ones((2, 2)))
    >>> [[(one.direction, one.query, one.candidate) for one in own] for own in false_negatives_by_gallery(found)]
    [[('i2t', 0, 1), ('i2t', 1, 0), ('t2i', 0, 1), ('t2i', 1, 0)]]
    """
    return [
        [
            one
            for lists in found.lists_of(gallery).values()
            for one in find_false_negatives(lists, right_from=right_from)
        ]
        for gallery in range(len(found.folds) if galleries is None else galleries)
    ]


def in_positions_of_data(found: Diagnostics, by_gallery: Sequence[Sequence[FalseNegative]]) -> list[FalseNegative]:
    """False negatives of all galleries in one list, with positions counted within the whole data.

    Each direction is sorted by falling excess over the needed degree, then by rank.

    >>> from rungwise.evaluation._protocols import ConsecutiveFolds
    >>> data = ImageCaptions(tuple("abcd"), ("pup", "dog", "cat", "kitten"), np.arange(4))
    >>> scores, relevance = {"similarity": np.eye(4)}, np.ones((4, 4))
    >>> found = diagnose(scores, data, relevance=relevance, protocol=ConsecutiveFolds("halves", 2, 2))
    >>> wrong = in_positions_of_data(found, false_negatives_by_gallery(found))
    >>> [(one.query, one.candidate) for one in wrong if one.direction == "i2t"]
    [(0, 1), (1, 0), (2, 3), (3, 2)]
    """
    wrong = []
    for fold, own in zip(found.folds, by_gallery, strict=False):
        places = {"i2t": (fold.images, fold.captions), "t2i": (fold.captions, fold.images)}
        for one in own:
            queries, candidates = places[one.direction]
            wrong.append(replace(one, query=int(queries[one.query]), candidate=int(candidates[one.candidate])))
    return sorted(wrong, key=lambda one: (one.direction, one.needed - one.degree, one.rank, one.query))


def _refuse_unless_falling(thresholds: Sequence[float]) -> None:
    if not np.isfinite(thresholds).all() or any(low >= high for high, low in pairwise(thresholds)):
        given = ", ".join(f"{one:g}" for one in thresholds)
        raise UserError(f"thresholds {given} cut no rungs; give finite degrees, each below the one before")


def _gallery(
    source: SimilaritySource, data: ImageCaptions, relevance: Any, fold: Fold
) -> tuple[SimilaritySource, ImageCaptions, CheckedDegrees | None]:
    degrees = checked_degrees(relevance, source.shape, gaps=True)
    if (len(fold.images), len(fold.captions)) == source.shape:
        return source, data, degrees
    degrees = degrees.select(fold.images, fold.captions) if degrees else None
    return source.select(fold.images, fold.captions), _part_of(data, fold), degrees


def _part_of(data: ImageCaptions, fold: Fold) -> ImageCaptions:
    def taken(values: tuple[Any, ...], positions: NDArray[np.int64]) -> tuple[Any, ...]:
        return tuple(values[position] for position in positions.tolist()) if values else ()

    return ImageCaptions(
        taken(data.image_ids, fold.images),
        taken(data.captions, fold.captions),
        np.searchsorted(fold.images, data.image_of_caption[fold.captions]),
        taken(data.caption_ids, fold.captions),
        taken(data.paths, fold.images),
        labels=taken(data.labels, fold.images),
        name=data.name,
        layout=data.layout,
    )


def _rungs(
    source: SimilaritySource, relevance: CheckedDegrees, thresholds: Sequence[float]
) -> tuple[tuple[float, ...], tuple[RungSlice, ...]]:
    """Thresholds, and the statistics of each rung in a sample of image queries."""
    images, captions = source.shape
    asked = evenly_spread(images, _SAMPLE)
    everything = np.arange(captions)
    degrees = np.asarray(relevance.block(asked, everything), dtype=np.float64)
    known = ~np.isnan(degrees)
    if not known.any():
        return (), ()
    cuts = tuple(float(one) for one in thresholds) or _cuts(degrees[known])
    if source.rank_only:
        return cuts, ()
    rows = source.select(asked, everything).rows(len(asked))
    scores = np.concatenate([np.array(block, dtype=np.float64) for _, block in rows])
    order = np.argsort(-scores, axis=1, kind="stable")
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.broadcast_to(np.arange(captions), order.shape), axis=1)
    slices = []
    for low, high in zip((*cuts, -np.inf), (np.inf, *cuts), strict=True):
        here = known & (degrees >= low) & (degrees < high)
        if not here.any():
            slices.append(RungSlice(low, 0, (), float("nan"), float("nan")))
            continue
        slices.append(
            RungSlice(
                low,
                int(here.sum()),
                tuple(np.percentile(scores[here], [5, 25, 50, 75, 95]).tolist()),
                float(100 * places[here].mean() / max(1, captions - 1)),
                float(100 * (places[here] < 10).mean()),
            )
        )
    return cuts, tuple(slices)


def _cuts(degrees: NDArray[np.float64]) -> tuple[float, ...]:
    """Default thresholds, falling; fewer than three where degrees are so coarse that they coincide."""
    cuts = np.quantile(degrees, [1 - share for share in _SHARES], method="higher")
    return tuple(sorted({float(cut) for cut in cuts if cut > degrees.min()}, reverse=True))


def _coherence(
    source: SimilaritySource, data: ImageCaptions, relevance: CheckedDegrees, positives: RightAnswers | None
) -> dict[Direction, MeanCurve] | None:
    steps = [k for k in _CS_STEPS if k <= max(source.shape)]
    if not steps or _has_gaps(relevance, source.shape):
        return None
    result = evaluate(
        similarity=source,
        image_of_caption=data.image_of_caption,
        relevance=relevance,
        measures=[f"CS@{k}" for k in steps],
        protocol="full" if positives is None else "labels",
        settings=EvaluationSettings(positives=positives),
    )
    galleries: dict[Direction, int] = {"i2t": source.shape[1], "t2i": source.shape[0]}
    found: dict[Direction, MeanCurve] = {}
    for way, size in galleries.items():
        if own := [k for k in steps if k <= size]:
            values = np.stack([result.per_query(f"{way}/CS@{k}") for k in own], axis=1)
            found[way] = mean_curve(own, values, result.image_of_query(way), chance=0.0)
    return found


def _has_gaps(relevance: CheckedDegrees, shape: tuple[int, int]) -> bool:
    images, captions = shape
    blocks = np.array_split(np.arange(images), -(-images * captions // _BLOCK_VALUES))
    return any(np.isnan(relevance.block(some, np.arange(captions))).any() for some in blocks)


def _gap(source: SimilaritySource) -> Gap | None:
    if not isinstance(source, EmbeddingSource):
        return None
    image, text = source.image, source.text
    if image.shape[1:] != text.shape[1:] or len(image.shape) != 2:
        return None
    sides = []
    for vectors in (image, text):
        some = evenly_spread(len(vectors), 10 * _SHOWN)
        rows = np.asarray(vectors[some], dtype=np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        sides.append(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0))
    middle = np.concatenate(sides).mean(axis=0)
    _, _, directions = np.linalg.svd(np.concatenate(sides) - middle, full_matrices=False)
    flat = []
    for side in sides:
        step = -(-len(side) // _SHOWN)
        points = (side[::step] - middle) @ directions[:2].T
        flat.append(np.pad(points, ((0, 0), (0, 2 - points.shape[1]))))
    return Gap(float(np.linalg.norm(sides[0].mean(axis=0) - sides[1].mean(axis=0))), flat[0], flat[1])
