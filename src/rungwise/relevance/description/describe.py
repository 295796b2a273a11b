"""A source described on a sample of pairs, and thresholds that cut its degrees into rungs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.relevance._base import Block, Degrees, Positions
from rungwise.relevance.precomputed import SavedDegrees

__all__ = [
    "BAR",
    "BINS",
    "DegreeSample",
    "Description",
    "describe",
    "relevant_from",
    "rung_shares",
    "sample",
    "thresholds",
]

BINS = 20
BAR = 40
_RELEVANT_FROM = {"SceneRelevance": 1.0, "Labels": 1.0, "BiEncoder": 0.5}
"""Lowest relevant degree of sources with a known scale: all that is said is true, a label is shared, models agree."""
_RELEVANT_SHARE = 0.005
"""Share of relevant pairs for other sources: one picture in 200 is relevant to a caption."""
_ROUNDING = 1e-6
"""Largest difference between degrees that ought to be the same."""
_NO_OTHERS = "thresholds need captions of other pictures, and there are none"


@dataclass(frozen=True)
class DegreeSample:
    """Degrees of sampled images with their own captions, or with any captions where ownership is not known.

    Attributes:
        images: (m,) positions.
        captions: (n,) positions.
        degrees: (m, n) float32.
        own: (m, n) bool, the caption was written for the image; all False where that is not known.
    """

    images: Positions
    captions: Positions
    degrees: Block
    own: NDArray[np.bool_]

    __repr__ = short_repr

    @property
    def others(self) -> Block:
        """The known degrees of captions of other pictures."""
        return self.degrees[~self.own & ~np.isnan(self.degrees)]


def sample(
    source: Degrees,
    *,
    pairs: int = 1_000_000,
    images: ArrayLike | None = None,
    captions: ArrayLike | None = None,
) -> DegreeSample:
    """Degrees of about ``pairs`` pairs: images drawn at random, and the captions of these images.

    Args:
        source: Source to sample.
        pairs: Number of pairs, roughly.
        images: Positions of the images to draw from, such as those of the training split; None takes all.
        captions: Positions of the captions to draw from; None takes all, or those of ``images`` where the source knows
            the image of each caption.
    """
    every = [np.arange(count) for count in source.shape]
    from_images, from_captions = source.positions(
        every[0] if images is None else np.unique(np.asarray(images, np.int64)),
        every[1] if captions is None else np.unique(np.asarray(captions, np.int64)),
    )
    owners = source.image_of_caption
    if owners is not None and images is not None:
        from_captions = from_captions[np.isin(owners[from_captions], from_images)]
    if not len(from_images) or not len(from_captions):
        raise UserError(f"relevance: no pairs to sample of {len(from_images)} images and {len(from_captions)} captions")
    draw = np.random.default_rng(0)
    rows = min(len(from_images), max(2, round((pairs * len(from_images) / len(from_captions)) ** 0.5)))
    chosen = np.sort(draw.choice(from_images, rows, replace=False))
    candidates = from_captions if owners is None else from_captions[np.isin(owners[from_captions], chosen)]
    if not len(candidates):
        candidates = from_captions
    columns = np.sort(draw.choice(candidates, min(len(candidates), max(1, pairs // rows)), replace=False))
    own = np.zeros((rows, len(columns)), bool) if owners is None else chosen[:, None] == owners[columns][None, :]
    return DegreeSample(chosen, columns, source.block(chosen, columns), own)


def thresholds(
    source: Degrees,
    shares: Sequence[float],
    *,
    pairs: int = 1_000_000,
    images: ArrayLike | None = None,
    captions: ArrayLike | None = None,
) -> tuple[float, ...]:
    """Degrees that cut the non-paired candidates into rungs of given shares, measured on a sample.

    Args:
        source: Source whose scale the thresholds are on; they mean nothing for another source.
        shares: Share of candidates in each rung but the last, from the top: ``(0.001, 0.01)`` puts the best 0.1 % on
            the first rung and the next 1 % on the second.
        pairs: Number of pairs to sample, roughly; at least some tens must fall on each rung.
        images: Positions of the images to measure on, such as those of the training split; None takes all.
        captions: Positions of the captions; None takes all, or those of ``images`` where the source knows them.

    Returns:
        Falling thresholds, one per share; a degree equal to a threshold is on the upper rung. Where many candidates
        have one degree a rung is larger than asked, up to twice: :func:`rung_shares` says what was reached.

    Raises:
        UserError: If shares are not positive or leave nothing for the last rung, or the source gives so many candidates
            the same degree that no threshold comes near a share.

    >>> from rungwise.relevance.lexical import CIDErD
    >>> source = CIDErD(["a red dog", "a dog", "a cat", "the dog"], [0, 1, 2, 3])
    >>> [round(value, 2) for value in thresholds(source, (0.16, 0.3))]
    [0.69, 0.36]
    """
    ends = np.cumsum(shares)
    if not len(ends) or min(shares) <= 0 or ends[-1] >= 1:
        raise UserError(f"shares must be positive and add up to less than 1, got {tuple(shares)}")
    seen = sample(source, pairs=pairs, images=images, captions=captions)
    degrees = np.sort(seen.others)[::-1]
    if not len(degrees):
        raise UserError(_NO_OTHERS)
    cuts = degrees[np.maximum(np.ceil(ends * len(degrees)).astype(np.int64) - 1, 0)]
    reached = np.searchsorted(-degrees, -cuts, side="right") / len(degrees)
    for cut, end, share in zip(cuts, ends, reached, strict=True):
        if share > 2 * end + 2 / len(degrees):
            raise UserError(
                f"no threshold puts {end:.2%} of the candidates above it: {share:.2%} have {cut:g} or more, many"
                " exactly that; ask for larger shares or take a source with finer degrees"
            )
    if (np.diff(cuts) >= 0).any():
        raise UserError(f"thresholds {cuts.tolist()} do not fall: the rungs are finer than the degrees; ask for fewer")
    return tuple(float(cut) for cut in cuts)


def relevant_from(source: object, degrees: ArrayLike) -> tuple[float, str]:
    """The least degree that counts as relevant, and why in a few words.

    Args:
        source: Origin of the degrees: a source, degrees that one saved, or a bare matrix.
        degrees: Degrees of some pairs, of any shape, NaN where there is none; at least one is a number.
    """
    known = np.asarray(degrees)
    known = known[~np.isnan(known)]
    name = source.header["source"] if isinstance(source, SavedDegrees) else type(source).__name__
    if name in _RELEVANT_FROM:
        return _RELEVANT_FROM[name], f"the rule for {name}"
    least = float(known.min())
    if name == "HumanJudgements":
        return (least + float(known.max())) / 2, "the middle of the grades"
    start = float(np.quantile(known, 1 - _RELEVANT_SHARE, method="higher")) - _ROUNDING
    start = start if start > least else float(known[known > least].min(initial=math.inf))
    return start, f"so that {(known >= start).mean():.2%} of the pairs are"


def rung_shares(
    source: Degrees,
    thresholds: Sequence[float],
    *,
    pairs: int = 1_000_000,
    images: ArrayLike | None = None,
    captions: ArrayLike | None = None,
) -> tuple[float, ...]:
    """Share of the candidates on each rung but the last: how near :func:`thresholds` came to the shares it was given.

    Args:
        source: Source whose degrees the thresholds are on.
        thresholds: Falling degrees.
        pairs: Number of pairs to sample, roughly; with the number given to :func:`thresholds` these are the same pairs.
        images: Positions of the images to measure on; None takes all.
        captions: Positions of the captions; None as in :func:`thresholds`.

    Returns:
        One share per threshold; a UserError if every pair is a picture with its own caption.
    """
    degrees = sample(source, pairs=pairs, images=images, captions=captions).others
    if not len(degrees):
        raise UserError(_NO_OTHERS)
    return tuple(np.diff([float((degrees >= cut).mean()) for cut in thresholds], prepend=0.0).tolist())


@dataclass(frozen=True)
class Description:
    """A source's degrees in numbers; prints as text.

    Attributes:
        name: Name of the source.
        pairs: Number of sampled pairs.
        own: Mean degree of captions with their own image; NaN where none is known.
        others: Mean degree of all other pairs.
        zeros: Share of other pairs with degree 0.
        percentiles: Degree of other pairs at 1, 10, 50, 90, 99, 99.9 %.
        edges: (bins + 1,) edges of the histogram of other pairs.
        counts: (bins,) number of pairs in each bin.
        shares: Threshold to share of other pairs at or above it.
        of_words: Its zeros mean something; False where it found no words to compare, so that they are not shown.
    """

    name: str
    pairs: int
    own: float
    others: float
    zeros: float
    percentiles: dict[float, float]
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    shares: dict[float, float]
    of_words: bool = True

    __repr__ = short_repr

    def __str__(self) -> str:
        zeros = f", of which {self.zeros:.1%} are 0" if self.of_words else ""
        lines = [
            f"{self.name}: {self.pairs:,} pairs; mean {self.own:.3f} of captions with their own image,"
            f" {self.others:.4f} of all others{zeros}",
            "percentiles: " + ", ".join(f"{at:g} % {value:.3f}" for at, value in self.percentiles.items()),
        ]
        lines += [f"at or above {cut:.4g}: {share:.3%}" for cut, share in self.shares.items()]
        # Most degrees are near the low end, so bars are on a logarithmic scale: otherwise only one would be seen.
        most = max(1, int(self.counts.max()))
        tallest = np.log1p(most)
        lines += [
            "pairs of other images by degree; a bar is as long as the logarithm of 1 + its",
            f"number of pairs, and a full bar ({BAR} wide) is {most:,} pairs:",
        ]
        for low, high, count in zip(self.edges[:-1], self.edges[1:], self.counts, strict=True):
            bar = "█" * round(BAR * float(np.log1p(count) / tallest))
            lines.append(f"{low:9.3f} ..{high:8.3f} {count:10,d} {bar}")
        return "\n".join(lines)


def describe(
    source: Degrees, *, at: Sequence[float] = (), pairs: int = 1_000_000, name: str = "", of_words: bool = True
) -> Description:
    """Histogram, percentiles and shares above thresholds of a sample of pairs.

    Args:
        source: Source to describe.
        at: Thresholds whose shares are shown.
        pairs: Number of pairs to sample, roughly.
        name: Name of the source in print; empty takes the source's class.
        of_words: Show the share of zeros; it means nothing where the source found no words to compare.

    >>> from rungwise.relevance.lexical import CIDErD
    >>> print(describe(CIDErD(["a red dog", "a dog", "a cat", "the dog"], [0, 1, 2, 3]), at=[0.5]))
    CIDErD: 16 pairs; mean 5.625 of captions with their own image, 0.2687 of all others, of which 16.7% are 0
    percentiles: 1 % 0.000, ...
    at or above 0.5: 16.667%
    pairs of other images by degree; a bar is as long as the logarithm of 1 + its
    number of pairs, and a full bar (40 wide) is 4 pairs:
        0.000 ..   0.035          2 ...
    ...
    """
    seen = sample(source, pairs=pairs)
    others = seen.others.astype(np.float64)
    if not len(others):
        raise UserError(
            "relevance: no sampled pair has a degree but pictures with their own captions; there is nothing to describe"
        )
    own = seen.degrees[seen.own & ~np.isnan(seen.degrees)]
    counts, edges = np.histogram(others, bins=BINS)
    percents = (1.0, 10.0, 50.0, 90.0, 99.0, 99.9)
    return Description(
        name=name or type(source).__name__,
        pairs=seen.degrees.size,
        own=float(own.mean()) if own.size else float("nan"),
        others=float(others.mean()),
        zeros=float((others == 0).mean()),
        percentiles=dict(zip(percents, np.percentile(others, percents).tolist(), strict=True)),
        edges=edges,
        counts=counts,
        shares={float(cut): float((others >= cut).mean()) for cut in at},
        of_words=of_words,
    )
