"""What a report shows besides the numbers, from one gallery: curves, rungs, hubs, the gap between the modalities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.data.collection import ImageCaptions
from rungwise.evaluation.evaluate import evaluate, source_of
from rungwise.evaluation.positives import RightAnswers
from rungwise.evaluation.protocols import Fold, Protocol, protocol_named
from rungwise.evaluation.ranked_lists import RankedLists
from rungwise.evaluation.top_lists import TopLists, look
from rungwise.metrics.rankings import Direction
from rungwise.metrics.sources import Source, as_slice

LIST_LENGTH = 30
"""Of the lists that are kept: what the ladder paper's figure shows."""

_CS_STEPS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_SAMPLE = 300
_SHARES = (0.001, 0.01, 0.1)
_SHOWN = 400


@dataclass(frozen=True)
class RungSlice:
    """Pairs of one rung, among a sample of image queries.

    Attributes:
        low: The lowest degree that belongs to it; -inf for the last rung.
        pairs: How many of the sampled pairs are on it.
        quantiles: 5, 25, 50, 75 and 95 % of their similarity.
        percentile: Mean place of its captions in an image's ranking, 0 first and 100 last.
        found: Share of its pairs whose caption stands in the first ten, in percent.
    """

    low: float
    pairs: int
    quantiles: tuple[float, ...]
    percentile: float
    found: float


@dataclass(frozen=True)
class Gap:
    """Where images and captions lie, their vectors normalised.

    Attributes:
        distance: Between the mean image and the mean caption (Liang et al. 2022).
        images: (n, 2) some of the images on the two directions in which all of them vary most.
        captions: (n, 2) some of the captions.
    """

    distance: float
    images: NDArray[np.float64]
    captions: NDArray[np.float64]


@dataclass(frozen=True)
class Findings:
    """All of a report but the numbers; of the protocol's first gallery where it has several.

    Attributes:
        data: The gallery.
        galleries: How many the protocol has.
        lists: What stands first for every query.
        thresholds: Falling degrees that cut the rungs; empty without relevance.
        rungs: One more than thresholds; empty without relevance.
        coherence: Per direction, (K, CS@K); empty without relevance.
        gap: None where there are no embeddings of one width.
    """

    data: ImageCaptions
    galleries: int
    lists: Mapping[Direction, TopLists]
    thresholds: tuple[float, ...] = ()
    rungs: tuple[RungSlice, ...] = ()
    coherence: Mapping[Direction, Sequence[tuple[int, float]]] | None = None
    gap: Gap | None = None


def examine(
    scores: Mapping[str, Any],
    data: ImageCaptions,
    *,
    relevance: Any = None,
    positives: RightAnswers | None = None,
    protocol: str | Protocol = "full",
    thresholds: Sequence[float] = (),
) -> Findings:
    """Look closer at what :func:`~rungwise.evaluation.evaluate` judges.

    Args:
        scores: ``similarity``, or ``image_embeddings`` and ``text_embeddings``, as ``evaluate`` takes them.
        data: All images and captions; a collection without texts is enough for everything but their slices.
        relevance: Degrees, as ``evaluate`` takes them; NaN where nobody was asked leaves the curves of CS out.
        positives: As ``evaluate`` takes them.
        protocol: A protocol or its name.
        thresholds: Falling degrees that cut the rungs. Default: so that 0.1, 1 and 10 % of the pairs lie above.

    Raises:
        UserError: As ``evaluate``.

    >>> data = ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1]))
    >>> found = examine({"similarity": np.eye(2)}, data, relevance=np.eye(2), thresholds=[0.5])
    >>> [(rung.pairs, rung.percentile) for rung in found.rungs], found.lists["t2i"].hubness
    ([(2, 0.0), (2, 100.0)], 0.0)
    """
    rule = protocol_named(protocol)
    owners = data.image_of_caption
    source = source_of(**scores, image_of_caption=owners, images=len(data))
    folds = rule.folds(owners, len(data))
    fold = folds[0]
    whole = len(fold.images) == len(data) and len(fold.captions) == len(owners)
    part = source if whole else source.select(fold.images, fold.captions)
    gallery = data if whole else _part_of(data, fold)
    degrees = None if relevance is None else _Part(relevance, fold)
    lists = look(part, gallery.image_of_caption, degrees, positives, LIST_LENGTH)
    if isinstance(source, RankedLists):
        lists = {way: lists[way] for way in source.directions}
    found = Findings(gallery, len(folds), lists, gap=_gap(scores))
    if degrees is None:
        return found
    cuts, rungs = _rungs(part, degrees, thresholds)
    return replace(
        found,
        thresholds=cuts,
        rungs=rungs,
        coherence=None if isinstance(source, RankedLists) else _coherence(part, gallery, degrees, positives),
    )


class _Part:
    """Degrees of a gallery, gaps included."""

    def __init__(self, relevance: Any, fold: Fold) -> None:
        self._relevance = relevance
        self._fold = fold

    def block(self, images: NDArray[np.int64], captions: NDArray[np.int64]) -> NDArray[np.float64]:
        rows, columns = self._fold.images[images], self._fold.captions[captions]
        if hasattr(self._relevance, "block"):
            return np.asarray(self._relevance.block(rows, columns), dtype=np.float64)
        return np.asarray(self._relevance[as_slice(rows)][:, as_slice(columns)], dtype=np.float64)


def _part_of(data: ImageCaptions, fold: Fold) -> ImageCaptions:
    def taken(values: tuple[Any, ...], positions: NDArray[np.int64]) -> tuple[Any, ...]:
        return tuple(values[position] for position in positions.tolist()) if values else ()

    return ImageCaptions(
        taken(data.image_ids, fold.images),
        taken(data.captions, fold.captions),
        np.searchsorted(fold.images, data.image_of_caption[fold.captions]),
        taken(data.caption_ids, fold.captions),
        taken(data.paths, fold.images),
        name=data.name,
        layout=data.layout,
    )


def _rungs(
    source: Source, relevance: _Part, thresholds: Sequence[float]
) -> tuple[tuple[float, ...], tuple[RungSlice, ...]]:
    images, captions = source.shape
    asked = np.unique(np.linspace(0, images - 1, min(images, _SAMPLE)).round().astype(np.int64))
    everything = np.arange(captions)
    rows = source.select(asked, everything).rows(len(asked))
    scores = np.concatenate([np.array(block, dtype=np.float64) for _, block in rows])
    degrees = relevance.block(asked, everything)
    known = ~np.isnan(degrees)
    if not known.any():
        return (), ()
    order = np.argsort(-scores, axis=1, kind="stable")
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.broadcast_to(np.arange(captions), order.shape), axis=1)
    cuts = tuple(float(one) for one in thresholds) or _cuts(degrees[known])
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
    """Degrees at the shares, falling; fewer where degrees are so coarse that shares coincide."""
    cuts = np.quantile(degrees, [1 - share for share in _SHARES], method="higher")
    return tuple(sorted({float(cut) for cut in cuts if cut > degrees.min()}, reverse=True))


def _coherence(
    source: Source, data: ImageCaptions, relevance: _Part, positives: RightAnswers | None
) -> dict[Direction, list[tuple[int, float]]] | None:
    steps = [k for k in _CS_STEPS if k <= max(source.shape)]
    everything = (np.arange(len(data)), np.arange(len(data.captions)))
    if not steps or np.isnan(relevance.block(everything[0][:1], everything[1])).any():
        return None
    result = evaluate(
        similarity=source,
        image_of_caption=data.image_of_caption,
        images=len(data),
        relevance=relevance,
        measures=[f"CS@{k}" for k in steps],
        protocol="full" if positives is None else "labels",
        positives=positives,
    )
    galleries: dict[Direction, int] = {"i2t": source.shape[1], "t2i": source.shape[0]}
    return {way: [(k, result[f"{way}/CS@{k}"]) for k in steps if k <= size] for way, size in galleries.items()}


def _gap(scores: Mapping[str, Any]) -> Gap | None:
    image, text = scores.get("image_embeddings"), scores.get("text_embeddings")
    if image is None or text is None or image.shape[1:] != text.shape[1:] or len(image.shape) != 2:
        return None
    sides = []
    for vectors in (image, text):
        some = np.unique(np.linspace(0, len(vectors) - 1, min(len(vectors), 10 * _SHOWN)).round().astype(np.int64))
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
