"""Pictures that show the same though their files differ: saved anew, resized, brightened or cropped a little.

Every picture becomes a thumbnail of one size. Pairs are compared in three steps, each on the pairs that passed before:

1. the correlation of very small versions, for all pairs at once;
2. the crop and the change of light that make one thumbnail most like the other (Lucas and Kanade 1981, with a scale and
   a shift across and down), and whether that crop lies within the picture: two pictures of the same thing at different
   places are shifted, and no crop of each other;
3. the correlation of the aligned thumbnails; that of their details alone, which two smooth skies do not pass; and the
   place where they differ most, which two shots of one moving thing do not pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from rungwise.data.files import Picture
from rungwise.data.pictures._decoding import small_image

SIDE = 32
"""Side of a square thumbnail in pixels."""

COARSE_ALIKE = 0.75
"""Least correlation of two very small versions that are compared closely."""

ALIKE, DETAILS_ALIKE = 0.9, 0.8
"""Least correlations of two aligned thumbnails, and of their details, that show the same."""

LOCALLY_APART = 1.0
"""Largest mean squared difference in a spot of some pixels, as a multiple of the whole picture's variance."""

SMALLEST_CROP = 0.8
"""Least share of a side that a crop keeps."""

_COARSE = 8
_OUTSIDE = 0.012
_STEPS = 4
_FARTHEST = 0.06
_MOST = 12
_ROWS_AT_ONCE, _PAIRS_AT_ONCE = 256, 256

Pixels = NDArray[np.uint8]
Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class Likeness:
    """Two pictures that show the same.

    Attributes:
        first: Position of the first picture.
        second: Position of the second picture.
        correlation: Correlation of the aligned thumbnails.
    """

    first: int
    second: int
    correlation: float


def thumbnail_pixels(source: Picture | str | bytes) -> Pixels:
    """(:data:`SIDE`, :data:`SIDE`, 3) uint8: a picture squeezed into a square; a UserError if it cannot be read."""
    small = small_image(source, 2 * SIDE).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.asarray(small)


def alike_across(
    thumbnails: Pixels, groups: ArrayLike, progress: Callable[[int], None] | None = None
) -> list[Likeness]:
    """Pairs of pictures of different groups that show the same.

    Time grows with the number of such pairs: the first step takes a multiplication for each, in small blocks.

    Args:
        thumbnails: (n, :data:`SIDE`, :data:`SIDE`, 3) from :func:`thumbnail_pixels`.
        groups: (n,) integers, such as the number of each picture's split.
        progress: Called with the number of pictures compared since the last call.

    Returns:
        Pairs in the order of the first picture, which is of the group with the smaller number.

    >>> noise = np.random.default_rng(0).integers(0, 200, (3, SIDE, SIDE, 3), dtype=np.uint8)
    >>> noise[2] = noise[0] + 20
    >>> [(one.first, one.second) for one in alike_across(noise, [0, 0, 1])]
    [(0, 2)]
    """
    group = np.asarray(groups)
    found: list[Likeness] = []
    small = _smallest(thumbnails)
    for number in np.unique(group):
        mine, others = np.flatnonzero(group == number), np.flatnonzero(group < number)
        for at in range(0, len(mine), _ROWS_AT_ONCE):
            rows = mine[at : at + _ROWS_AT_ONCE]
            if len(others):
                found += _close_look(thumbnails, *_candidates(small, rows, others))
            if progress is not None:
                progress(len(rows))
    return sorted(found, key=lambda one: (one.first, one.second))


def _smallest(thumbnails: Pixels) -> Numbers:
    """Unit vectors of very small versions."""
    by = SIDE // _COARSE
    small = np.empty((len(thumbnails), _COARSE * _COARSE * 3), np.float32)
    for at in range(0, len(thumbnails), _ROWS_AT_ONCE):
        part = thumbnails[at : at + _ROWS_AT_ONCE]
        blocks = part.reshape(len(part), _COARSE, by, _COARSE, by, 3).mean(axis=(2, 4), dtype=np.float32)
        small[at : at + len(part)] = _unit(blocks).reshape(len(part), -1)
    return small


def _candidates(small: Numbers, rows: NDArray[np.int64], others: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Pairs whose very small versions are alike, the best few of each row."""
    values = small[rows] @ small[others].T
    row, column = np.nonzero(values >= COARSE_ALIKE)
    order = np.lexsort((-values[row, column], row))
    row, column = row[order], column[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    return others[column[rank < _MOST]], rows[row[rank < _MOST]]


def _close_look(thumbnails: Pixels, first: NDArray[np.int64], second: NDArray[np.int64]) -> list[Likeness]:
    found = []
    for at in range(0, len(first), _PAIRS_AT_ONCE):
        one, other = first[at : at + _PAIRS_AT_ONCE], second[at : at + _PAIRS_AT_ONCE]
        a, b = thumbnails[one].astype(np.float32), thumbnails[other].astype(np.float32)
        same, correlation = same_picture(a, b)
        found += [Likeness(int(one[k]), int(other[k]), float(correlation[k])) for k in np.flatnonzero(same)]
    return found


def same_picture(first: Numbers, second: Numbers) -> tuple[NDArray[np.bool_], Numbers]:
    """(n,) whether pairs of (n, :data:`SIDE`, :data:`SIDE`, 3) thumbnails show the same, and their correlations."""
    place = _aligned(_halved(first), _halved(second), (2, 0))
    # Seen in the frame of the one that is cropped, nothing is missing.
    swapped = place[:, 0] * place[:, 2] > 1
    whole = swapped[:, None, None, None]
    first, second = np.where(whole, second, first), np.where(whole, first, second)
    place = np.where(swapped[:, None], _inverse(place), place)
    likely = _correlation(_unit(_seen(first, place)), _unit(second)) >= ALIKE - 0.1
    same, correlation = np.zeros(len(first), bool), np.zeros(len(first), np.float32)
    some = np.flatnonzero(likely)
    if len(some):
        a, b = first[some], second[some]
        place = _aligned(a, b, (1, 0), place[some])
        same[some], correlation[some] = _judged(a, b, place)
    return same, correlation


def _judged(first: Numbers, second: Numbers, place: Numbers) -> tuple[NDArray[np.bool_], Numbers]:
    seen = _seen(first, place)
    one, other = _unit(seen), _unit(second)
    correlation = _correlation(one, other)
    details = _correlation(_unit(seen - _blurred(seen, 4)), _unit(second - _blurred(second, 4)))
    local = _blurred((one - other) ** 2, 2).mean(axis=3).max(axis=(1, 2)) * one[0].size
    return (
        (correlation >= ALIKE) & (details >= DETAILS_ALIKE) & (local <= LOCALLY_APART) & _is_crop(place),
        correlation,
    )


def _inverse(place: Numbers) -> Numbers:
    """Place of the first in the second."""
    scale, shift = place[:, [0, 2]], place[:, [1, 3]]
    inverse: Numbers = np.stack([1 / scale, -shift / scale], axis=2).reshape(len(place), 4)
    return inverse


def _is_crop(place: Numbers) -> NDArray[np.bool_]:
    """Whether the second lies within the first, across and down."""
    scale, shift = place[:, [0, 2]], place[:, [1, 3]]
    parts = [shift >= -_OUTSIDE, shift + scale <= 1 + _OUTSIDE, scale >= SMALLEST_CROP]
    within: NDArray[np.bool_] = np.asarray(np.stack(parts).all(axis=(0, 2)))
    return within


def _aligned(first: Numbers, second: Numbers, blurs: tuple[int, ...], place: Numbers | None = None) -> Numbers:
    """(n, 4) place of the second in the first: scale and shift across, then down, as shares of the sides."""
    count, side = len(first), first.shape[1]
    centre = ((np.arange(side) + 0.5) / side).astype(np.float32)
    best = np.tile(np.array([1, 0, 1, 0], np.float32), (count, 1)) if place is None else place
    target = _unit(second)
    value = _correlation(_unit(_seen(first, best)), target)
    for blur in blurs:
        place, soft = best, _blurred(first, blur)
        aim = _unit(_blurred(second, blur)).reshape(count, -1, 1)
        for _ in range(_STEPS):
            unit = _unit(_seen(soft, place))
            across, down = np.gradient(unit, 1 / side, axis=2), np.gradient(unit, 1 / side, axis=1)
            slopes = np.stack(
                [across * centre[None, None, :, None], across, down * centre[None, :, None, None], down], axis=1
            )
            # What changes the mean or the contrast alone is no move: the light may differ.
            slopes = (slopes - slopes.mean(axis=(2, 3), keepdims=True)).reshape(count, 4, -1)
            now = unit.reshape(count, -1, 1)
            slopes -= (slopes @ now) * now.transpose(0, 2, 1)
            curvature = slopes @ slopes.transpose(0, 2, 1) + 1e-4 * np.eye(4, dtype=np.float32)
            move = np.linalg.solve(curvature, slopes @ (aim - now))[..., 0]
            place = place + np.clip(move, -_FARTHEST, _FARTHEST).astype(np.float32) * place[:, [0, 0, 2, 2]]
        reached = _correlation(_unit(_seen(first, place)), target)
        better = reached > value
        best = np.where(better[:, None], place, best)
        value = np.maximum(value, reached)
    return best


def _seen(pictures: Numbers, place: Numbers) -> Numbers:
    """The content of a place of each picture, scaled to its size with linear interpolation."""
    side = pictures.shape[1]
    centre = (np.arange(side) + 0.5) / side

    def ends(scale: Numbers, shift: Numbers) -> tuple[NDArray[np.int64], Numbers]:
        where = np.clip((scale[:, None] * centre + shift[:, None]) * side - 0.5, 0, side - 1)
        low = np.minimum(where.astype(np.int64), side - 2)
        return low, (where - low).astype(np.float32)

    columns, right = ends(place[:, 0], place[:, 1])
    rows, below = ends(place[:, 2], place[:, 3])
    number = np.arange(len(pictures))[:, None]
    upper, lower = pictures[number, rows], pictures[number, rows + 1]
    lines = upper + (lower - upper) * below[:, :, None, None]
    one = np.take_along_axis(lines, columns[:, None, :, None], 2)
    other = np.take_along_axis(lines, columns[:, None, :, None] + 1, 2)
    seen: Numbers = one + (other - one) * right[:, None, :, None]
    return seen


def _unit(pictures: Numbers) -> Numbers:
    """Pictures without the mean of each colour and with one contrast, so that the light does not count."""
    centred = pictures - pictures.mean(axis=(1, 2), keepdims=True)
    length = np.sqrt(np.square(centred).sum(axis=(1, 2, 3), keepdims=True))
    unit: Numbers = centred / np.maximum(length, 1e-6)
    return unit


def _correlation(one: Numbers, other: Numbers) -> Numbers:
    correlation: Numbers = np.einsum("nijc,nijc->n", one, other)
    return correlation


def _halved(pictures: Numbers) -> Numbers:
    count, side = pictures.shape[:2]
    halved: Numbers = pictures.reshape(count, side // 2, 2, side // 2, 2, 3).mean(axis=(2, 4))
    return halved


def _blurred(pictures: Numbers, times: int) -> Numbers:
    """Pictures blurred by the kernel 1 : 2 : 1 in both directions, that many times."""
    for _ in range(times):
        for axis in (1, 2):
            wide = np.pad(pictures, [(1, 1) if one == axis else (0, 0) for one in range(4)], mode="edge")
            low, middle, high = (np.take(wide, range(at, at + pictures.shape[axis]), axis) for at in range(3))
            pictures = (low + np.float32(2) * middle + high) / np.float32(4)
    return pictures
