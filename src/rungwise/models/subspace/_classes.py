"""Class labels as fitted methods read them: the classes of each item, and the items without a label."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.core.text import natural_key

Labels = Sequence[Any] | ArrayLike
"""(n,) labels, (n,) tuples of labels, or an (n, classes) matrix of 0 and 1."""


@dataclass(frozen=True)
class Classes:
    """The classes of n items; an item has any number of them, none included.

    Attributes:
        names: (classes,) names of the classes, each with at least one item.
        members: (n, classes) bool.

    >>> found = Classes.of(["art", ("art", "war"), None])
    >>> found.names, found.members.tolist()
    (('art', 'war'), [[True, False], [True, True], [False, False]])
    >>> Classes.of(np.array([[1, 0], [0, 0]])).labelled
    array([ True, False])
    """

    names: tuple[str, ...]
    members: NDArray[np.bool_]

    @classmethod
    def of(cls, labels: Labels) -> Classes:
        """Read labels in any of their forms.

        Args:
            labels: (n,) names or numbers, where None, NaN and an empty text mean that an item has no label; (n,)
                tuples or lists of these; or an (n, classes) array of 0 and 1.
        """
        if hasattr(labels, "__array__"):  # tables and tensors among them
            labels = np.asarray(labels)
            if labels.ndim == 2:
                return cls._of_matrix(labels)
            if labels.ndim != 1:
                raise UserError(f"labels: an array of shape {labels.shape}; give one label for each row")
            labels = labels.tolist()
        given = list(_iterated(labels))
        own = [_names(one) for one in given]
        names = sorted({name for some in own for name in some}, key=natural_key)
        column = {name: number for number, name in enumerate(names)}
        members = np.zeros((len(own), len(names)), dtype=np.bool_)
        for row, some in zip(members, own, strict=True):
            row[[column[name] for name in some]] = True
        return cls(tuple(names), members)

    @classmethod
    def _of_matrix(cls, matrix: NDArray[Any]) -> Classes:
        if matrix.dtype.kind not in "biuf" or not np.isin(matrix, (0, 1)).all():
            raise UserError(
                f"labels: a matrix of shape {matrix.shape} has one column for each class and holds 0 and 1 alone; give"
                " such, or one label for each row"
            )
        members = matrix.astype(np.bool_)
        used = np.flatnonzero(members.any(axis=0))
        return cls(tuple(str(column) for column in used), members[:, used])

    def __len__(self) -> int:
        """Number of items."""
        return len(self.members)

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """(n,) bool: whether the item has a label."""
        return np.asarray(self.members.any(axis=1))

    @property
    def counts(self) -> NDArray[np.int64]:
        """(classes,) number of items of each class."""
        return np.asarray(self.members.sum(axis=0, dtype=np.int64))

    @property
    def are_single(self) -> bool:
        """Whether no item has more than one label."""
        return bool((self.members.sum(axis=1) <= 1).all())

    def take(self, positions: NDArray[np.int64]) -> Classes:
        """Classes of the items at these positions; classes without an item among them are left out."""
        members = self.members[positions]
        used = np.flatnonzero(members.any(axis=0))
        return Classes(tuple(self.names[column] for column in used), members[:, used])


def _iterated(labels: Any) -> Iterable[Any]:
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise UserError(f"labels: expected one label for each row, got {labels!r}")
    return labels


def _names(label: Any) -> tuple[str, ...]:
    """Labels of one item, as texts."""
    if isinstance(label, list | tuple | set | frozenset | np.ndarray):
        return tuple(dict.fromkeys(name for one in label for name in _names(one)))
    if label is None or label == "" or (isinstance(label, float | np.floating) and math.isnan(label)):
        return ()
    whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return (str(int(label)) if whole else str(label),)
