"""Two views of the same items, read in blocks: their moments and the statistics of their classes.

A method asks for sums over items, such as covariances, never for a matrix of items with items. Rows are read as often
as sums need them, and never held in memory all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rungwise.core import UserError
from rungwise.models.subspace._classes import Classes
from rungwise.models.subspace._eigenproblems import Matrix, principal_directions

BLOCK_VALUES = 1 << 22
"""Number of float64 values in a block (32 MiB)."""

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class ViewRows:
    """The rows of one side.

    Attributes:
        rows: Function from positions to (n, ...) float32 features.
        width: Width of a lifted row.
        lift: Modules that a row goes through first, such as a kernel's map.
    """

    rows: Callable[[Positions], Tensor]
    width: int
    lift: nn.Sequential

    def read(self, positions: Positions) -> NDArray[np.float64]:
        """(n, width) lifted rows at these positions."""
        with torch.inference_mode():
            return np.asarray(self.lift(self.rows(positions).float().cpu()).double().numpy())


@dataclass(frozen=True)
class Moments:
    """Covariances: averages over items of products of centred rows.

    Attributes:
        image: (D_i, D_i) covariance of the image view.
        text: (D_t, D_t) covariance of the text view.
        cross: (D_i, D_t) covariance between the views.
    """

    image: Matrix
    text: Matrix
    cross: Matrix


@dataclass(frozen=True)
class Scatter:
    """The spread of one view within and between classes, as averages over items.

    An item of several classes counts once in each.

    Attributes:
        within: (D, D) scatter around the means of the classes.
        means: (D, classes) mean of each class, less the mean of all, times the square root of the class's share:
            ``means @ means.T`` is the scatter between classes.
    """

    within: Matrix
    means: Matrix


@dataclass(frozen=True)
class Directions:
    """The solution of a method, one column for each direction of the common space.

    Attributes:
        image: (D_i, d) directions of the image view, for rows as :meth:`Views.blocks` gives them.
        text: (D_t, d) directions of the text view.
    """

    image: Matrix
    text: Matrix


class Views:
    """Both sides of some items, with their classes.

    Args:
        image: The image side.
        text: The text side.
        positions: (n,) positions of the items in both sides.
        classes: Classes of these items; None where a method reads none.
        bases: (D_i, d_i) and (D_t, d_t) directions on which centred rows are projected, largest variance first; None
            leaves rows unprojected.
        means: Means of the lifted rows, where they are known.
        moments: Moments in these bases, where they are known.

    >>> rows = torch.tensor([[0.0], [2.0]])
    >>> side = ViewRows(lambda positions: rows[positions], 1, nn.Sequential())
    >>> Views(side, side, np.arange(2)).moments.cross.tolist()
    [[1.0]]
    """

    def __init__(
        self,
        image: ViewRows,
        text: ViewRows,
        positions: Positions,
        classes: Classes | None = None,
        *,
        bases: tuple[Matrix, Matrix] | None = None,
        means: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        moments: Moments | None = None,
    ) -> None:
        self.image, self.text = image, text
        self.positions = positions
        self._classes = classes
        self.bases = bases
        self._reduced: dict[float, Views] = {}
        if means is not None:
            self.means = means
        if moments is not None:
            self.moments = moments

    def __len__(self) -> int:
        """Number of items."""
        return len(self.positions)

    @property
    def has_classes(self) -> bool:
        """Whether the items have classes."""
        return self._classes is not None

    @property
    def classes(self) -> Classes:
        """Classes of these items."""
        if self._classes is None:
            raise UserError("the method reads class labels, and there are none; give labels")
        return self._classes

    @cached_property
    def labelled(self) -> Views:
        """The items that have a label."""
        chosen = np.flatnonzero(self.classes.labelled)
        if len(chosen) == len(self):
            return self
        return Views(self.image, self.text, self.positions[chosen], self.classes.take(chosen), bases=self.bases)

    def reduced(self, share: float) -> Views:
        """The same items in the principal directions that hold this share of each view's variance; cached."""
        if share >= 1:
            return self
        if share not in self._reduced:
            self._reduced[share] = self._in_principal_directions(share)
        return self._reduced[share]

    def _in_principal_directions(self, share: float) -> Views:
        image, text = (principal_directions(one, share) for one in (self.moments.image, self.moments.text))
        moments = Moments(
            image.T @ self.moments.image @ image,
            text.T @ self.moments.text @ text,
            image.T @ self.moments.cross @ text,
        )
        return Views(
            self.image,
            self.text,
            self.positions,
            self._classes,
            bases=(image, text),
            means=self.means,
            moments=moments,
        )

    def blocks(self) -> Iterator[tuple[slice, Matrix, Matrix]]:
        """Blocks of items: their place among these items, and their centred rows in both views."""
        for some, image, text in self._read():
            first, second = image - self.means[0], text - self.means[1]
            yield (some, first, second) if self.bases is None else (some, first @ self.bases[0], second @ self.bases[1])

    def _read(self) -> Iterator[tuple[slice, Matrix, Matrix]]:
        step = max(16, BLOCK_VALUES // max(self.image.width, self.text.width))
        for begin in range(0, len(self), step):
            some = slice(begin, min(begin + step, len(self)))
            yield some, self.image.read(self.positions[some]), self.text.read(self.positions[some])

    @cached_property
    def means(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means of the lifted rows of both views, before any basis."""
        image, text = np.zeros(self.image.width), np.zeros(self.text.width)
        for _, first, second in self._read():
            image += first.sum(axis=0)
            text += second.sum(axis=0)
        return image / len(self), text / len(self)

    @cached_property
    def moments(self) -> Moments:
        """Covariances of the rows that :meth:`blocks` gives."""
        image, text = self.widths
        sums = np.zeros((image, image)), np.zeros((text, text)), np.zeros((image, text))
        for _, first, second in self.blocks():
            for total, one, other in zip(sums, (first, second, first), (first, second, second), strict=True):
                total += one.T @ other
        return Moments(*(total / len(self) for total in sums))

    @property
    def widths(self) -> tuple[int, int]:
        """Widths of the rows that :meth:`blocks` gives."""
        if self.bases is None:
            return self.image.width, self.text.width
        return self.bases[0].shape[1], self.bases[1].shape[1]

    def leading(self, count: int) -> tuple[Matrix, Matrix]:
        """The ``count`` directions of largest variance in each view, or fewer, for the rows that :meth:`blocks` gives.

        Returns:
            (D_i, d_i) and (D_t, d_t).
        """
        if self.bases is not None:
            image, text = (np.eye(width, min(count, width)) for width in self.widths)
            return image, text
        image, text = (principal_directions(one, 1.0)[:, :count] for one in (self.moments.image, self.moments.text))
        return image, text

    def weighted(self, weights: NDArray[np.float64]) -> tuple[Matrix, Matrix]:
        """Weighted sums over items of the outer products of rows with themselves, in each view.

        ``weights`` is (n,), at least 0.
        """
        image, text = (np.zeros((width, width)) for width in self.widths)
        for some, first, second in self.blocks():
            roots = np.sqrt(weights[some])[:, None]
            first, second = first * roots, second * roots
            image += first.T @ first
            text += second.T @ second
        return image, text

    def sums(self, weights: NDArray[np.float64] | NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
        """Weighted sums of rows, such as those of each class: (D_i, m) and (D_t, m) for (n, m) weights."""
        image, text = (np.zeros((width, weights.shape[1])) for width in self.widths)
        for some, first, second in self.blocks():
            own = weights[some].astype(np.float64)
            image += first.T @ own
            text += second.T @ own
        return image, text

    @cached_property
    def scatter(self) -> tuple[Scatter, Scatter]:
        """Scatter within and between classes, of both views.

        Raises:
            UserError: If there are fewer than two classes.
        """
        counts = several(self.classes).counts.astype(np.float64)
        total = counts.sum()
        if self.classes.are_single and self.classes.labelled.all():
            own = self.moments.image * len(self), self.moments.text * len(self)
        else:
            own = self.weighted(self.classes.members.sum(axis=1).astype(np.float64))
        found = []
        for products, sums in zip(own, self.sums(self.classes.members), strict=True):
            within = products - (sums / counts) @ sums.T
            means = sums / counts - sums.sum(axis=1, keepdims=True) / total
            found.append(Scatter(within / total, means * np.sqrt(counts / total)))
        return found[0], found[1]

    def projected(self, image: Matrix, text: Matrix) -> tuple[Matrix, Matrix]:
        """(n, d) centred rows of both views along (D_i, d) and (D_t, d) directions."""
        firsts, seconds = np.empty((len(self), image.shape[1])), np.empty((len(self), text.shape[1]))
        for some, first, second in self.blocks():
            firsts[some], seconds[some] = first @ image, second @ text
        return firsts, seconds


def several(classes: Classes) -> Classes:
    """Pass classes through if there are at least two; fewer raise UserError."""
    if len(classes.names) < 2:
        count, name = int(classes.labelled.sum()), repr(classes.names[0]) if classes.names else "no class"
        what = f"all {count} labelled items are of one class, {name}" if classes.names else "no item has a label"
        raise UserError(f"labels: {what}; give items of several classes")
    return classes
