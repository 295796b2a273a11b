"""Small data for the tests of fitted methods, sums over items written out, and how directions are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np
import torch
from torch import nn

from rungwise.models.subspace import CCA, GMLDA, GMMFA, LCFS, LGCFL, MLCCA, SCM, MvDA, Views
from rungwise.models.subspace._classes import Classes
from rungwise.models.subspace._views import ViewRows

METHODS = (CCA, SCM, GMLDA, GMMFA, MvDA, MLCCA, LCFS, LGCFL)
SUPERVISED = tuple(method for method in METHODS if method is not CCA)


def in_turn(methods: Sequence[Any], values: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Every method and every value at least once: what meets all methods in the class that they share."""
    count = max(len(methods), len(values))
    return list(islice(zip(cycle(methods), cycle(values), strict=False), count))


@dataclass(frozen=True)
class Items:
    """Two views of the same items; numbers are exact in float32.

    Attributes:
        images: (n, D_i) float64.
        texts: (n, D_t) float64.
        labels: (n,) numbers of classes, all of which occur.
    """

    images: np.ndarray
    texts: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def centred(self) -> tuple[np.ndarray, np.ndarray]:
        return self.images - self.images.mean(axis=0), self.texts - self.texts.mean(axis=0)


def some_items(seed: int = 0, count: int = 40, widths: tuple[int, int] = (5, 4), classes: int = 3) -> Items:
    """Classes with means of their own, in a space that both views share."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(0, classes, count - classes)])
    shared = 2 * rng.normal(size=(classes, 3))[labels] + rng.normal(size=(count, 3))
    views = [shared @ rng.normal(size=(3, width)) + 0.5 * rng.normal(size=(count, width)) for width in widths]
    first, second = (view.astype(np.float32).astype(np.float64) for view in views)
    return Items(first, second, labels)


def several_labels(items: Items, seed: int = 0) -> np.ndarray:
    """(n, classes) 0 and 1: each item's class, and by chance others."""
    classes = int(items.labels.max()) + 1
    more = np.random.default_rng(seed).random((len(items), classes)) < 0.3
    return (np.eye(classes, dtype=bool)[items.labels] | more).astype(np.int64)


def views_of(images: np.ndarray, texts: np.ndarray, labels: Any = None) -> Views:
    """What methods solve, without a model."""

    def side(rows: np.ndarray) -> ViewRows:
        tensor = torch.from_numpy(np.asarray(rows, np.float32))
        return ViewRows(lambda positions: tensor[positions], rows.shape[1], nn.Sequential())

    classes = None if labels is None else Classes.of(labels)
    return Views(side(images), side(texts), np.arange(len(images)), classes)


def products(firsts: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Sum over items of the products of two rows, number by number."""
    total = np.zeros((firsts.shape[1], seconds.shape[1]))
    for first, second in zip(firsts, seconds, strict=True):
        for row in range(len(first)):
            for column in range(len(second)):
                total[row, column] += first[row] * second[column]
    return total


def ridged(matrix: np.ndarray, regularisation: float) -> np.ndarray:
    """With a share of its mean diagonal on the diagonal."""
    return matrix + regularisation * np.diag(matrix).mean() * np.eye(len(matrix))


def blocks(grid: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
    """A matrix from its blocks."""
    return np.vstack([np.hstack(row) for row in grid])


def ratios(numerator: np.ndarray, denominator: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(D,) eigenvalues, falling, and (D, D) vectors of A v = value B v, by B^-1 A and no decomposition of the package.

    B is positive definite.
    """
    values, vectors = np.linalg.eig(np.linalg.solve(denominator, numerator))
    order = np.argsort(-values.real)
    return values.real[order], vectors.real[:, order]


def same_directions(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-6) -> None:
    """Column for column up to a factor, which may differ from column to column."""
    assert found.shape == expected.shape
    for own, other in zip(found.T, expected.T, strict=True):
        cosine = abs(own @ other) / (np.linalg.norm(own) * np.linalg.norm(other))
        assert cosine == np.clip(cosine, 1 - tolerance, 1 + tolerance)


def same_space(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    """The columns span the same space: no principal angle is larger than the tolerance."""
    assert found.shape == expected.shape
    first, second = np.linalg.qr(found)[0], np.linalg.qr(expected)[0]
    assert np.linalg.norm(first - second @ (second.T @ first), 2) < tolerance


def slopes(value: Callable[[np.ndarray, np.ndarray], float], image: np.ndarray, text: np.ndarray) -> np.ndarray:
    """The gradient by differences, number by number."""
    found, step = [], 1e-7
    for side in (image, text):
        for place in np.ndindex(*side.shape):
            kept = side[place]
            side[place] = kept + step
            above = value(image, text)
            side[place] = kept - step
            found.append((above - value(image, text)) / (2 * step))
            side[place] = kept
    return np.array(found)
