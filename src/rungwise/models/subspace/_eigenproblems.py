"""The two problems of linear algebra behind every closed form here, each at the size of the features.

No matrix has the size of the number of samples squared. A numerator of low rank, such as the scatter of class means, is
given by its factors, so that the decomposed matrix is as small as the number of classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, svds

from rungwise.core import UserError

Matrix = NDArray[np.float64]

_DENSE = 1500
"""Smaller side up to which a full decomposition is faster than Lanczos' method for some vectors."""

_FEW = 8
"""Lanczos' method pays where at most one in so many vectors is needed."""

_NOTHING = 1e-9
"""Share of the largest value below which a value is rounding."""


def whitening(matrix: Matrix, regularisation: float) -> Matrix:
    """W with W' (C + r I) W = I, where r is ``regularisation`` times the mean of C's diagonal.

    Args:
        matrix: (D, D) symmetric and positive semi-definite C.
        regularisation: At least 0. With 0, directions in which C is zero are left out, as in a pseudo-inverse.

    Returns:
        (D, rank of C + r I).

    Raises:
        UserError: If C is zero.

    >>> whitening(np.diag([4.0, 0.0]), 0.0).tolist()
    [[0.5], [0.0]]
    """
    size = float(np.trace(matrix)) / len(matrix)
    if not size > 0:
        raise UserError("features do not vary: every row is the same; give features that tell items apart")
    if regularisation > 0:
        ridged = matrix + regularisation * size * np.eye(len(matrix))
        try:
            lower = linalg.cholesky(ridged, lower=True)
        except linalg.LinAlgError:  # a ridge below rounding
            return _spectral_whitening(ridged)
        return np.asarray(linalg.solve_triangular(lower, np.eye(len(matrix)), lower=True).T)
    return _spectral_whitening(matrix)


def _spectral_whitening(matrix: Matrix) -> Matrix:
    values, vectors = linalg.eigh(matrix)
    kept = values > len(values) * np.finfo(np.float64).eps * values[-1]
    return _signed(vectors[:, kept] / np.sqrt(values[kept]))


def principal_directions(covariance: Matrix, share: float) -> Matrix:
    """(D, d) smallest set of directions that hold this share of the variance, the largest first.

    >>> principal_directions(np.diag([1.0, 8.0, 1.0]), 0.8).ravel().tolist()
    [0.0, 1.0, 0.0]
    """
    values, vectors = linalg.eigh(covariance)
    falling = np.maximum(values[::-1], 0)
    held = np.cumsum(falling) / max(falling.sum(), np.finfo(np.float64).tiny)
    return _signed(vectors[:, ::-1][:, : int(np.searchsorted(held, share - 1e-12)) + 1])


def leading_pairs(cross: Matrix, image: Matrix, text: Matrix, count: int) -> tuple[Matrix, Matrix, NDArray[np.float64]]:
    """Pairs of directions in which two whitened views vary most together.

    Args:
        cross: (D_i, D_t) covariances between the views.
        image: (D_i, p) whitening of the image view.
        text: (D_t, q) whitening of the text view.
        count: Largest number of pairs.

    Returns:
        (D_i, d) and (D_t, d) directions and (d,) singular values, falling; values that are rounding are left out.
    """
    inner = image.T @ cross @ text
    left, values, right = _singular(inner, min(count, *inner.shape))
    count = min(count, int((values > _NOTHING * max(values[0], np.finfo(np.float64).tiny)).sum()))
    firsts, seconds = image @ left[:, :count], text @ right[:count].T
    signs = _signs(firsts)
    return firsts * signs, seconds * signs, values[:count]


def _singular(matrix: Matrix, count: int) -> tuple[Matrix, NDArray[np.float64], Matrix]:
    """At least ``count`` leading singular vectors and values, falling."""
    least = min(matrix.shape)
    if least > _DENSE and count * _FEW <= least:
        with suppress(ArpackNoConvergence):
            left, values, right = svds(matrix, k=count, v0=_start(least))
            order = np.argsort(-values)
            return left[:, order], values[order], right[order]
    found: tuple[Matrix, NDArray[np.float64], Matrix] = linalg.svd(matrix, full_matrices=False)
    return found


def best_directions(numerator: Matrix, whitened: Matrix, count: int) -> tuple[Matrix, NDArray[np.float64]]:
    """Directions v with the largest v' A v / v' B v.

    Args:
        numerator: (D, D) symmetric A.
        whitened: (D, p) whitening of B.
        count: Largest number of directions.

    Returns:
        (D, d) directions and (d,) ratios, falling; ratios that are not positive are left out.
    """
    return _best(whitened.T @ numerator @ whitened, whitened, count)


def best_directions_of_factors(
    factors: Matrix, middle: Matrix, whitened: Matrix, count: int
) -> tuple[Matrix, NDArray[np.float64]]:
    """:func:`best_directions` with the numerator A = G K G' given by its factors.

    Args:
        factors: (D, m) G.
        middle: (m, m) symmetric K.
        whitened: (D, p) whitening of B.
        count: Largest number of directions.
    """
    basis, mixing = linalg.qr(whitened.T @ factors, mode="economic")
    return _best(mixing @ middle @ mixing.T, whitened @ basis, count)


def _best(matrix: Matrix, basis: Matrix, count: int) -> tuple[Matrix, NDArray[np.float64]]:
    size = len(matrix)
    count = min(count, size)
    matrix = (matrix + matrix.T) / 2
    values, vectors = _largest(matrix, count)
    order = np.argsort(-values)
    values, vectors = values[order], vectors[:, order]
    kept = values > _NOTHING * max(abs(values[0]), np.finfo(np.float64).tiny)
    return _signed(basis @ vectors[:, kept]), values[kept]


def _largest(matrix: Matrix, count: int) -> tuple[NDArray[np.float64], Matrix]:
    """The ``count`` largest eigenvalues, in any order, and their vectors."""
    size = len(matrix)
    if size > _DENSE and count * _FEW <= size:
        with suppress(ArpackNoConvergence):
            found: tuple[NDArray[np.float64], Matrix] = eigsh(matrix, k=count, which="LA", v0=_start(size))
            return found
    every: tuple[NDArray[np.float64], Matrix] = linalg.eigh(matrix, subset_by_index=(size - count, size - 1))
    return every


def side_by_side(blocks: Sequence[Matrix]) -> Matrix:
    """Block-diagonal matrix of these matrices."""
    return np.asarray(linalg.block_diag(*blocks))


def _start(size: int) -> NDArray[np.float64]:
    """(size,) start of Lanczos' method: always the same, and not in the kernel of a matrix."""
    return np.random.default_rng(0).standard_normal(size)


def _signed(directions: Matrix) -> Matrix:
    return directions * _signs(directions)


def _signs(directions: Matrix) -> NDArray[np.float64]:
    """(d,) 1 or -1, which make the largest number of each direction positive: the same data give the same vectors."""
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[None], axis=0)[0]
    return np.where(largest < 0, -1.0, 1.0)
