"""Sources made of sources: weighted sums, maxima, and curves that bring degrees to 0..1 or to people's grades.

Sources have scales of their own (CIDEr 0..10, a cosine -1..1): calibrate before you combine.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.relevance._base import Block, Degrees, Frequencies, Positions, joint_frequencies
from rungwise.relevance._caption_pairs import answers_caption_pairs, caption_pairs
from rungwise.relevance.combine._curves import Curve
from rungwise.relevance.description.describe import sample


class Combination(Degrees):
    """Base of what is made of sources of the same images and captions: give :meth:`combined`.

    Args:
        sources: One source or more; a UserError if they differ in shape or captions.
    """

    def __init__(self, sources: Sequence[Degrees]) -> None:
        super().__init__(_common_shape(sources))
        self.sources = tuple(sources)
        self.image_of_caption = next(
            (one.image_of_caption for one in sources if one.image_of_caption is not None), None
        )
        self.captions_hash = next((one.captions_hash for one in sources if one.captions_hash is not None), None)
        self.complete = all(source.complete for source in sources)
        references = {source.reference for source in sources}
        self.reference = references.pop() if len(references) == 1 else None

    def known_pairs(self) -> Positions | None:
        """The pairs that every source knows."""
        return common_pairs(self.sources)

    @property
    def frequencies_from(self) -> Frequencies | None:
        """The least that is known of one of the sources."""
        return joint_frequencies(source.frequencies_from for source in self.sources)

    @property
    def models(self) -> frozenset[str]:
        """Picture models of all sources."""
        return frozenset().union(*(source.models for source in self.sources))

    @property
    def of_caption_pairs(self) -> bool:
        """Every source has degrees by caption pair, and so has the combination."""
        return all(map(answers_caption_pairs, self.sources))

    @abstractmethod
    def combined(self, blocks: Iterator[Block]) -> Block:
        """One block from the blocks of the sources, which come in their order."""

    def block(self, images: ArrayLike, captions: ArrayLike) -> Block:
        """(len(images), len(captions)) float32 degrees."""
        return self.combined(source.block(images, captions) for source in self.sources)

    def pair_block(self, first: ArrayLike, second: ArrayLike) -> Block:
        """(len(first), len(second)) float32 degrees by caption pair: those of the sources, combined."""
        return self.combined(caption_pairs(source).pair_block(first, second) for source in self.sources)

    def choices(self) -> Mapping[str, Any]:
        """The combination's own choices, and what each source is called."""
        return {**super().choices(), "of": [source.called for source in self.sources]}

    def options(self) -> Mapping[str, Any]:
        """The hash of each source."""
        return {"sources": [source.content_hash() for source in self.sources]}


class WeightedSum(Combination):
    """Sum of weight * degree over sources, with one weight for each source.

    >>> from rungwise.relevance.lexical import CIDErD, TfIdf
    >>> captions, of = ["a dog", "a cat", "the dog"], [0, 1, 2]
    >>> both = WeightedSum([CIDErD(captions, of), TfIdf(captions, of)], [0.1, 0.5])
    >>> both.dense().round(2)[0]
    array([1.  , 0.18, 0.18], dtype=float32)
    """

    def __init__(self, sources: Sequence[Degrees], weights: Sequence[float]) -> None:
        super().__init__(sources)
        if len(weights) != len(sources):
            raise UserError(f"relevance: {len(weights)} weights for {len(sources)} sources; give one each")
        self.weights = tuple(float(weight) for weight in weights)

    def combined(self, blocks: Iterator[Block]) -> Block:
        """The weighted sum of the blocks."""
        total = np.float32(self.weights[0]) * next(blocks)
        for block, weight in zip(blocks, self.weights[1:], strict=True):
            total += np.float32(weight) * block
        return total

    def options(self) -> Mapping[str, Any]:
        """Weights, and the hash of each source."""
        return {"weights": list(self.weights), **super().options()}


class Maximum(Combination):
    """The highest degree that any source gives."""

    def combined(self, blocks: Iterator[Block]) -> Block:
        """The elementwise maximum of the blocks."""
        highest = np.array(next(blocks))
        for block in blocks:
            np.maximum(highest, block, out=highest)
        return highest


def mean(sources: Sequence[Degrees]) -> WeightedSum:
    """The average of sources."""
    return WeightedSum(sources, [1 / max(1, len(sources))] * len(sources))


class Calibrated(Combination):
    """A source through a rising curve: straight lines between knots, level beyond them.

    Args:
        source: Source to calibrate.
        knots: (knots,) degrees of the source, rising.
        values: (knots,) calibrated degrees at the knots, not falling.

    >>> from rungwise.relevance.lexical import CIDErD
    >>> source = CIDErD(["a dog", "a cat"], [0, 1])
    >>> Calibrated(source, [0, 10], [0, 1]).dense()
    array([[0.5, 0. ],
           [0. , 0.5]], dtype=float32)
    """

    def __init__(self, source: Degrees, knots: ArrayLike, values: ArrayLike) -> None:
        super().__init__([source])
        self.source = source
        self.knots: NDArray[np.float64] = np.array(knots, np.float64)
        self.values: NDArray[np.float64] = np.array(values, np.float64)
        if self.knots.ndim != 1 or self.knots.shape != self.values.shape:
            raise UserError(
                f"calibration: knots of shape {self.knots.shape} and values of shape {self.values.shape};"
                " give two lists of one length"
            )
        self._curve = Curve(tuple(self.knots.tolist()), tuple(self.values.tolist()))

    def combined(self, blocks: Iterator[Block]) -> Block:
        """The source's block, through the curve."""
        (block,) = blocks
        return self._curve.at(block).astype(np.float32)

    def options(self) -> Mapping[str, Any]:
        """The curve, and the source's hash."""
        return {
            "knots": self.knots.tolist(),
            "values": self.values.tolist(),
            "source": self.source.content_hash(),
        }


def to_unit_interval(source: Degrees, *, pairs: int = 1_000_000, images: ArrayLike | None = None) -> Calibrated:
    """A source brought to 0..1 by a straight line: its lowest degree of a sample to 0, its highest to 1.

    Captions of the sampled images are in the sample, so that the high end is that of well described images. What lies
    beyond the sample's ends becomes 0 or 1. Where few pairs have a degree at all, all of these are the sample.

    Args:
        source: Source to calibrate.
        pairs: Number of pairs to sample, roughly.
        images: Positions of the images to sample from, such as those of the training split; None takes all.

    Raises:
        UserError: If all known degrees of the sample are equal, or none is known.

    >>> from rungwise.relevance.lexical import CIDErD
    >>> to_unit_interval(CIDErD(["a dog", "a cat"], [0, 1])).dense()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    degrees = _some_degrees(source, pairs, images)
    degrees = degrees[~np.isnan(degrees)]
    if not degrees.size:
        raise UserError("calibration: no degree of the sampled pairs is known; sample more pairs")
    low, high = float(degrees.min()), float(degrees.max())
    if not low < high:
        raise UserError(f"calibration: all {degrees.size} sampled degrees are {low:g}; such a source has no scale")
    return Calibrated(source, [low, high], [0.0, 1.0])


def _some_degrees(source: Degrees, pairs: int, images: ArrayLike | None) -> NDArray[Any]:
    """Degrees of all known pairs where these can be listed, else of a sample."""
    listed = source.known_pairs()
    if listed is None:
        return sample(source, pairs=pairs, images=images).degrees
    if images is not None:
        listed = listed[np.isin(listed[:, 0], np.asarray(images, np.int64))]
    return pair_degrees(source, *listed.T)


def pair_degrees(source: Degrees, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float64]:
    """(pairs,) degrees of single pairs, computed image by image."""
    rows, columns = np.asarray(images, np.int64), np.asarray(captions, np.int64)
    degrees = np.empty(len(rows))
    order = np.argsort(rows, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(rows[order])) + 1) if len(rows) else []:
        degrees[part] = source.block(rows[part[:1]], columns[part])[0]
    return degrees


def common_pairs(sources: Sequence[Degrees]) -> Positions | None:
    """(n, 2) ascending positions (image, caption) of the pairs that all sources know.

    None where no source lists its pairs. Sources that do not list theirs are passed over, so that a degree may be NaN.

    >>> from rungwise.relevance.human import HumanJudgements
    >>> common_pairs([HumanJudgements([0, 1], [0, 1], [5, 4], (2, 2)), HumanJudgements([1, 1], [0, 1], [5, 4], (2, 2))])
    array([[1, 1]])
    """
    lists = [pairs for source in sources if (pairs := source.known_pairs()) is not None]
    if not lists:
        return None
    width = max(1, sources[0].shape[1])
    keys = reduce(np.intersect1d, (pairs @ np.array([width, 1]) for pairs in lists))
    return np.stack(np.divmod(keys, width), axis=1)


def _common_shape(sources: Sequence[Degrees]) -> tuple[int, int]:
    shapes = {source.shape for source in sources}
    if len(shapes) != 1:
        raise UserError(
            f"relevance: sources of shapes {sorted(shapes)} cannot be combined; build them from the same captions"
        )
    if len({source.captions_hash for source in sources} - {None}) > 1:
        raise UserError(
            "relevance: sources of different captions cannot be combined; build them from the same captions, in one"
            " order and of the same images"
        )
    return shapes.pop()
