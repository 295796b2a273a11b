"""Pictures that have nothing to do with any collection: patterns without a thing in them, computed and always the same.

They are for queries by picture what ``UNRELATED`` is for texts: how near the best picture of an index comes to what it
does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

_SIDE = 128
_COLOURS = np.array(
    [(0.9, 0.2, 0.2), (0.2, 0.5, 0.9), (0.95, 0.85, 0.2), (0.2, 0.7, 0.3), (0.6, 0.3, 0.7), (0.1, 0.1, 0.15), (1, 1, 1)]
)

Plane = NDArray[np.float64]


def unrelated_pictures() -> list[bytes]:
    """PNG files of 24 patterns: plain colours, gradients, noise, stripes, chequers, discs, rings and waves.

    >>> pictures = unrelated_pictures()
    >>> len(pictures), pictures == unrelated_pictures()
    (24, True)
    """
    return [_png(picture) for picture in _patterns()]


def _patterns() -> Iterator[NDArray[np.float64]]:
    """(side, side, 3) pictures with values in 0..1."""
    rng = np.random.default_rng(45)
    down, across = np.mgrid[0:_SIDE, 0:_SIDE] / (_SIDE - 1)
    radius = np.hypot(down - 0.5, across - 0.5)
    angle = np.arctan2(down - 0.5, across - 0.5)
    yield _mixed(np.zeros_like(down), 1, 1)
    yield _mixed(np.full_like(down, 0.5), 5, 6)
    for value, first, second in (
        (across, 1, 6),  # gradients
        (down, 0, 2),
        ((across + down) / 2, 4, 3),
        (np.clip(1.4 * radius, 0, 1), 6, 5),
        ((np.sin(40 * across) > 0) * 1.0, 0, 6),  # stripes
        ((np.sin(90 * down) > 0) * 1.0, 5, 6),
        ((np.sin(55 * (across + down)) > 0) * 1.0, 1, 2),
        (0.5 + 0.5 * np.sin(25 * (across - down)), 3, 4),
        ((np.sin(25 * across) * np.sin(25 * down) > 0) * 1.0, 5, 6),  # chequers
        ((np.sin(70 * across) * np.sin(70 * down) > 0) * 1.0, 0, 3),
        ((radius < 0.3) * 1.0, 6, 0),  # discs and rings
        ((np.hypot(down - 0.3, across - 0.65) < 0.18) * 1.0, 1, 2),
        ((np.sin(60 * radius) > 0) * 1.0, 6, 4),
        ((np.abs(radius - 0.3) < 0.05) * 1.0, 2, 5),
        ((np.sin(8 * angle) > 0) * 1.0, 3, 6),  # rays and a spiral
        (0.5 + 0.5 * np.sin(3 * angle + 30 * radius), 1, 0),
        (0.5 + 0.25 * (np.sin(18 * across + 5 * down) + np.sin(31 * down - 9 * across)), 4, 2),  # waves
    ):
        yield _mixed(np.asarray(value, np.float64), first, second)
    yield rng.random((_SIDE, _SIDE, 3))  # noise, from fine to coarse
    yield np.repeat(rng.random((_SIDE, _SIDE, 1)), 3, axis=2)
    for blocks in (8, 32):
        yield rng.random((blocks, blocks, 3)).repeat(_SIDE // blocks, axis=0).repeat(_SIDE // blocks, axis=1)
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(_SIDE), np.fft.fftfreq(_SIDE)))
    smooth = np.fft.ifft2(np.fft.fft2(rng.normal(size=(3, _SIDE, _SIDE))) / (1e-2 + frequency)).real
    yield np.clip(0.5 + 0.2 * smooth / smooth.std(), 0, 1).transpose(1, 2, 0).astype(np.float64)


def _mixed(share: Plane, first: int, second: int) -> NDArray[np.float64]:
    return np.asarray((1 - share)[..., None] * _COLOURS[first] + share[..., None] * _COLOURS[second])


def _png(picture: NDArray[np.float64]) -> bytes:
    from PIL import Image

    file = BytesIO()
    Image.fromarray((255 * picture).round().astype(np.uint8)).save(file, "PNG")
    return file.getvalue()
